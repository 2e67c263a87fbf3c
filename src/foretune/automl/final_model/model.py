"""A model for tables: how their columns are read, and one or several fitted pipelines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.final_model.model_file import read_header, read_model, write_model
from foretune.automl.metrics import choose_classes
from foretune.errors import UsageError
from foretune.tables.number_formats import MARKS
from foretune.tables.schema import Schema
from foretune.tables.table import Table
from foretune.tables.target import LabelKind, Task


@dataclass(frozen=True, eq=False)
class Model:
    """Predicts the target of tables like the one it was fitted to.

    Several members are blended: the mean of their probabilities, or of their numbers, by weight.
    """

    schema: Schema
    task: Task
    target: str
    classes: tuple[str, ...]
    """In the order of the columns of `predict_proba`; none for regression."""
    members: tuple[Member, ...]
    metric: str
    """What the members were chosen by."""
    about: dict[str, Any] = field(default_factory=dict)
    """Anything else worth keeping, as JSON."""
    label_kind: LabelKind = LabelKind.TEXT
    shares: tuple[float, ...] = ()
    """What probabilities are divided by before a class is chosen, so that rare ones are found;
    the most probable class is chosen where there are none.
    """
    target_decimal: str = ""
    """How the target was written, as `Table` has it."""

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
        """The model of members that were fitted to this table."""
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
        """The classes as they were in the table: texts, whole numbers, numbers or booleans."""
        return self.label_kind.labels(self.classes)

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """(n,) labels or numbers.

        Columns may come in any order and with more beside them. What cannot be read as in the
        table of the fit, such as a category that it did not have, counts as missing. Numbers may
        have another mark of fractions than there.
        """
        parts = self.schema.as_written_in(frame).in_parts(frame)
        return np.concatenate([self.predict_rows(x) for _, x in parts])

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        """(n, classes) probabilities."""
        parts = self.schema.as_written_in(frame).in_parts(frame)
        return np.concatenate([self.probabilities(x) for _, x in parts])

    def predict_rows(self, x: Floats, probabilities: Floats | None = None) -> NDArray[Any]:
        """The same as `predict` for rows that `schema` has read.

        probabilities: theirs, where they are known already.
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
        """(n,), the codes of the classes that probabilities (n, classes) come to."""
        return choose_classes(probabilities, self.shares)

    def probabilities(self, x: Floats) -> Floats:
        """The same as `predict_proba` for rows that `schema` has read."""
        if self.task is Task.REGRESSION:
            raise UsageError(
                f"probabilities need classes, but '{self.target}' is a number: predict it",
                rule="probabilities-of-numbers",
                field=self.target,
            )
        return self._mean(lambda member: member.probabilities(x, len(self.classes)))

    def _mean(self, predicted: Callable[[Member], Floats]) -> Floats:
        """By weight; one member after the other, because predictions may be large."""
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
            "members": [
                {"config": each.config, "known": list(each.known), "weight": each.weight}
                for each in self.members
            ],
        }
        write_model(Path(path), about, [member.pipeline for member in self.members])

    @staticmethod
    def read_header(path: str | Path) -> dict[str, Any]:
        """Read what a file says of its model: columns, target, members; no pipeline is loaded."""
        return read_header(Path(path))

    @classmethod
    def open(cls, path: str | Path) -> "Model":
        """Read a file that `save` has written, and refuse every other one."""
        about, pipelines = read_model(Path(path))
        try:
            members = tuple(
                Member(each["config"], pipeline, tuple(each["known"]), float(each["weight"]))
                for each, pipeline in zip(about["members"], pipelines, strict=True)
            )
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
            # Also pipelines of another version of a library, which fail when they are first used.
            said = " ".join(str(error).split())[:200]
            raise UsageError(
                f"a model must be a file saved by Foretune that this installation can use, but "
                f"'{path}' is not ({said}): fit it again",
                rule="unusable-model",
                value=said,
            ) from error
        return model

    def _check(self) -> None:
        """Refuse parts that do not belong together, and see whether it can predict at all."""
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
            if member.pipeline.n_features_in_ != len(self.schema.features):
                raise ValueError(f"a member is for {member.pipeline.n_features_in_} columns")
        empty = np.full((1, len(self.schema.features)), np.nan)
        for member in self.members:
            member.predict(empty)
