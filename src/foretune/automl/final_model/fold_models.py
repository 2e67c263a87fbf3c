"""Keeps the pipelines that trials fitted to their folds, so that a model can be made of them.

A worker writes one file for each configuration, in the form of a model file, beside its
out-of-fold predictions. Only the owner may read it. Nothing is fitted again for the final model.
The file of a steady estimator holds one pipeline that has learnt from all rows.
"""

import copy
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretune._base.files import replace_file
from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.estimators.fold_average import average_members
from foretune.automl.final_model.model_file import ENTRY, read_model, write_model
from foretune.automl.out_of_fold import predictions_path
from foretune.errors import ForetuneError

SUFFIX = ".folds"
INCUMBENT = "incumbent.json"
MOST_BYTES = 2**31
"""The most bytes that the pipelines of all trials may take on the disk."""
FEW_ALWAYS_KEPT = 5
"""The pipelines of this many best trials are kept however large they are."""


@dataclass(frozen=True, slots=True)
class FoldCosts:
    """What the fold models of a configuration cost a prediction."""

    predict_seconds: float
    """CPU seconds in which the folds' pipelines predicted the rows of one fold, together."""
    bytes: int
    """The size of their file."""


def save_fold_models(
    folder: Path, members: Sequence[Member], *, columns: int, predict_seconds: float
) -> None:
    """Write the pipelines of all folds of a configuration, in one step.

    columns: those of the matrix. predict_seconds: as in `FoldCosts`.
    """
    about = {
        "config": members[0].config,
        "known": [list(each.known) for each in members],
        "columns": columns,
        "predict_seconds": predict_seconds,
    }
    pipelines = [_without_history(each.pipeline) for each in members]
    path = fold_models_path(folder, members[0].config)
    write_model(path, about, pipelines, is_private=True)


def _without_history(pipeline: Any) -> Any:
    """Return a pipeline whose last step has forgotten the losses of its rounds.

    No prediction needs them, and a file describes each number apart: 5,000 rounds took 6 seconds.
    """
    steps = getattr(pipeline, "steps", [])
    if steps and getattr(steps[-1][1], "_evals_result", None):
        last = copy.copy(steps[-1][1])
        last._evals_result = {}
        pipeline = copy.copy(pipeline)
        pipeline.steps = [*steps[:-1], (steps[-1][0], last)]
    return pipeline


def load_fold_models(folder: Path, config: Mapping[str, Any]) -> Member | None:
    """Return the average of a configuration's fold models; None if they cannot be read."""
    path = fold_models_path(folder, config)
    if not path.exists():
        return None
    try:
        about, pipelines = read_model(path)
        members = [
            Member(dict(config), pipeline, tuple(known))
            for pipeline, known in zip(pipelines, about["known"], strict=True)
        ]
        one, *others = members
        return average_members(members, int(about["columns"])) if others else one
    except (ForetuneError, OSError, LookupError, TypeError, ValueError):
        return None


def fold_costs(folder: Path, config: Mapping[str, Any]) -> FoldCosts | None:
    """Return what a configuration's fold models cost; None if they are not kept."""
    path = fold_models_path(folder, config)
    try:
        # The header alone is read, because the file may be large.
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(ENTRY))["model"]
        return FoldCosts(float(about["predict_seconds"]), path.stat().st_size)
    except (OSError, LookupError, TypeError, ValueError, zipfile.BadZipFile, RuntimeError):
        return None


def drop_fold_models(
    folder: Path, best_first: Iterable[Mapping[str, Any]], most_bytes: int = MOST_BYTES
) -> None:
    """Remove the fold models of the poorest configurations, so that the rest fits on the disk."""
    taken = 0
    for place, config in enumerate(best_first):
        path = fold_models_path(folder, config)
        with suppress(OSError):
            size = path.stat().st_size
            if taken + size > most_bytes and place >= FEW_ALWAYS_KEPT:
                path.unlink()
            else:
                taken += size


def save_incumbent(folder: Path, members: Iterable[tuple[Mapping[str, Any], float]]) -> None:
    """Write which configurations the model of these folds has, and their weights."""
    weights = {predictions_path(folder, config).stem: weight for config, weight in members}
    with suppress(OSError):  # A full disk must not cost the model.
        replace_file(folder / INCUMBENT, lambda path: _write_json(path, weights), is_private=True)


def load_incumbent(folder: Path) -> dict[str, float]:
    """Return the weights of the model's configurations, by the name of their files."""
    try:
        known = json.loads((folder / INCUMBENT).read_text())
        weights = {str(name): float(weight) for name, weight in known.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
    return weights if all(0.0 < weight <= 1.0 for weight in weights.values()) else {}


def _write_json(path: Path, content: Mapping[str, float]) -> None:
    path.write_text(json.dumps(content))


def fold_models_path(folder: Path, config: Mapping[str, Any]) -> Path:
    """Return the file of a configuration's fold models."""
    return predictions_path(folder, config).with_suffix(SUFFIX)
