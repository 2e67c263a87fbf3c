"""A model for tables: the schema that reads their columns, and one or several fitted pipelines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.estimators.plain_linear import PlainLinearModel, from_plain, to_plain
from foretune.automl.final_model.model_file import LINEAR, read_header, read_model, write_model
from foretune.automl.metrics import choose_classes
from foretune.errors import UsageError
from foretune.tables import MARKS, LabelKind, Schema, Table, Task


@dataclass(frozen=True, eq=False)
class Model:
    """Predicts the target of tables like the one it was fitted to.

    The prediction of several members is the weighted mean of their probabilities or numbers.
    """

    schema: Schema
    task: Task
    target: str
    classes: tuple[str, ...]
    """The classes in the order of the columns of `predict_proba`; empty for regression."""
    members: tuple[Member, ...]
    metric: str
    """The metric that chose the members."""
    about: dict[str, Any] = field(default_factory=dict)
    """Other facts about the model, as JSON."""
    label_kind: LabelKind = LabelKind.TEXT
    shares: tuple[float, ...] = ()
    """Probabilities are divided by these before a class is chosen, so that rare classes are found.
    If empty, the most probable class is chosen.
    """
    target_decimal: str = ""
    """The decimal mark of the target, as in `Table`."""

    def __post_init__(self) -> None:
        weights = np.array([member.weight for member in self.members])
        if not len(weights) or not (np.isfinite(weights) & (weights > 0)).all():
            raise UsageError(
                "a model needs members with positive weights, but got "
                f"{weights.tolist()}: leave the others out",
                rule="member-weight",
                value=weights.tolist(),
            )

    @classmethod
    def of(
        cls,
        table: Table,
        members: Sequence[Member],
        *,
        target: str,
        metric: str,
        about: Mapping[str, Any] | None = None,
        shares: Sequence[float] = (),
    ) -> "Model":
        """Return the model of members that were fitted to this table."""
        return cls(
            table.schema,
            table.task,
            target,
            table.classes,
            tuple(members),
            metric,
            dict(about or {}),
            table.label_kind,
            tuple(shares),
            table.target_decimal,
        )

    @property
    def labels(self) -> NDArray[Any]:
        """The classes as in the table: texts, whole numbers, numbers or booleans."""
        return self.label_kind.labels(self.classes)

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Predict labels or numbers (n,).

        Columns may be in any order, and there may be others. A cell that the schema cannot read,
        such as a new category, counts as missing. Numbers may have another decimal mark than in
        the table of the fit.
        """
        parts = self.schema.with_marks_of(frame).in_parts(frame)
        return np.concatenate([self.predict_rows(x) for _, x in parts])

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        """Predict probabilities (n, classes)."""
        parts = self.schema.with_marks_of(frame).in_parts(frame)
        return np.concatenate([self.probabilities(x) for _, x in parts])

    def predict_rows(self, x: Floats, probabilities: Floats | None = None) -> NDArray[Any]:
        """Predict as `predict` does, for rows that `schema` has read.

        probabilities: those of the rows, if they are known already.
        """
        if self.task is Task.REGRESSION:
            return self._mean(lambda member: member.predict(x))
        if len(self.members) == 1 and not self.shares:
            codes = self.members[0].predict(x)
        else:
            codes = self.choose_classes(
                self.probabilities(x) if probabilities is None else probabilities
            )
        return self.labels[codes.astype(np.int64)]

    def choose_classes(self, probabilities: Floats) -> Floats:
        """Return the codes (n,) of the classes that follow from probabilities (n, classes)."""
        return choose_classes(probabilities, self.shares)

    def probabilities(self, x: Floats) -> Floats:
        """Predict as `predict_proba` does, for rows that `schema` has read."""
        if self.task is Task.REGRESSION:
            raise UsageError(
                f"probabilities need classes, but '{self.target}' is a number: predict it",
                rule="probabilities-of-numbers",
                field=self.target,
            )
        return self._mean(lambda member: member.probabilities(x, len(self.classes)))

    def _mean(self, predicted: Callable[[Member], Floats]) -> Floats:
        """Return the weighted mean, one member at a time because predictions may be large."""
        first, *others = self.members
        if not others:
            return predicted(first)
        total = first.weight * predicted(first)
        for member in others:
            total += member.weight * predicted(member)
        mean: Floats = total / sum(member.weight for member in self.members)
        return mean

    def save(self, path: str | Path) -> None:
        """Write the model to one file, in one step."""
        about = {
            "columns": self.schema.to_list(),
            "task": str(self.task),
            "target": self.target,
            "classes": list(self.classes),
            "label_kind": str(self.label_kind),
            "shares": list(self.shares),
            "target_decimal": self.target_decimal,
            "metric": self.metric,
            "about": self.about,
            "members": [_plain_member(member) for member in self.members],
        }
        pipelines = [member.pipeline for member in self.members]
        others = [each for each in pipelines if not isinstance(each, PlainLinearModel)]
        write_model(Path(path), about, others)

    @staticmethod
    def read_header(path: str | Path) -> dict[str, Any]:
        """Read the description of a model (columns, target, members) without its pipelines."""
        return read_header(Path(path))

    @classmethod
    def open(cls, path: str | Path) -> "Model":
        """Open a file that `save` has written, and refuse any other file."""
        about, pipelines = read_model(Path(path))
        try:
            members = _members(about["members"], pipelines)
            model = cls(
                Schema.from_list(about["columns"]),
                Task(about["task"]),
                about["target"],
                tuple(about["classes"]),
                members,
                about["metric"],
                about["about"],
                LabelKind(about["label_kind"]),
                tuple(about.get("shares", ())),
                str(about.get("target_decimal", "")),
            )
            model._check()
        except Exception as error:
            # Pipelines of another version of a library fail only when they are first used.
            said = " ".join(str(error).split())[:200]
            raise UsageError(
                f"a model must be a file saved by Foretune that this installation can use, but "
                f"'{path}' is not ({said}): fit it again",
                rule="unusable-model",
                value=said,
            ) from error
        return model

    def _check(self) -> None:
        """Refuse parts that do not belong together, and check that the model can predict."""
        if len(self.labels) != len(set(self.classes)) or not isinstance(self.target, str):
            raise ValueError("its target or its classes are not told apart")
        if self.shares and not (len(self.shares) == len(self.classes) and min(self.shares) > 0):
            raise ValueError(f"its {len(self.classes)} classes have the shares {self.shares}")
        if self.target_decimal not in ("", *MARKS):
            raise ValueError(f"the mark of fractions is one of {MARKS}")
        for member in self.members:
            known = list(member.known)
            if known != sorted(set(known) & set(range(len(self.classes)))):
                raise ValueError(f"a member knows the classes {known} of {len(self.classes)}")
            if bool(known) != (self.task is Task.CLASSIFICATION):
                raise ValueError(f"a member is for another task than {self.task}")
            # A pipeline that begins with a network of our own does not say it.
            columns = getattr(member.pipeline, "n_features_in_", len(self.schema.features))
            if columns != len(self.schema.features):
                raise ValueError(f"a member is for {columns} columns")
        empty = np.full((1, len(self.schema.features)), np.nan)
        for member in self.members:
            member.predict(empty)


def _plain_member(member: Member) -> dict[str, Any]:
    """Return a member as plain values for JSON, with its pipeline if that is a linear model."""
    plain = {"config": member.config, "known": list(member.known), "weight": member.weight}
    is_linear = isinstance(member.pipeline, PlainLinearModel)
    return {**plain, LINEAR: to_plain(member.pipeline)} if is_linear else plain


def _members(plain: Sequence[Mapping[str, Any]], pipelines: Sequence[Any]) -> tuple[Member, ...]:
    """Return members of linear models, and of pipelines in the order of the other members."""
    left, members = iter(pipelines), []
    for each in plain:
        known = tuple(each["known"])
        linear = each.get(LINEAR)
        pipeline = next(left) if linear is None else from_plain(linear, classes=len(known))
        members.append(Member(each["config"], pipeline, known, float(each["weight"])))
    if next(left, None) is not None:
        raise ValueError("a pipeline belongs to no member")
    return tuple(members)
