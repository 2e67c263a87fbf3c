"""Tensor-OBOE (Yang et al., 2020) with run times: 23,424 pipelines on 551 datasets.

There are two tensors, of a dataset by the steps of a pipeline. If a run time is NaN, the pipeline
was not run and the error is only imputed: it is left out. A run time of -1 marks a run that
failed. A dataset without any run is left out too.
"""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from foretune.errors import ExperienceError
from foretune.experience import Experience
from foretune.numerics import Floats
from foretune.plugins import SILENT, Progress, track
from foretune.stores import DAMAGED, Archive
from foretune_lab.archives.matrices import ERROR, with_records
from foretune_lab.archives.oboe import ModelPart, infer_model_space

ERRORS = "error_tensor_imputed_20-4-2-2-8-20_f16_compressed.npz"
SECONDS = "runtime_tensor_f16_compressed.npz"
SEARCH_SPACE = "TensorOboe/classification.json"
STEPS = ("imputer", "encoder", "standardizer", "dim_reducer", "estimator")
FAILED = -1.0


def read(source: Path | str, *, progress: Progress = SILENT) -> Experience:
    """Read errors and run times from the oboe wheel, or a folder that holds its `TensorOboe` files.

    The pipelines and errors are those of the `deeppipe` importer's Tensor-OBOE. The values of the
    hyperparameters, run times and failures are added; the splits of that paper are left out.
    """
    archive = Archive.at(source)
    members = [archive.need(name) for name in (ERRORS, SECONDS)]
    errors, seconds = (_tensor(archive, m) for m in track(members, progress, "reading", 2))
    pipelines = _pipelines(archive, archive.need(SEARCH_SPACE))
    if errors.shape != seconds.shape or errors.shape[1] != len(pipelines):
        raise ExperienceError(
            f"errors and run times must be known for {len(pipelines)} pipelines, but the tensors "
            f"have {errors.shape[1]} and {seconds.shape[1]}",
            rule="pipeline-count",
            value=len(pipelines),
        )
    failed = seconds == FAILED
    errors[np.isnan(seconds) | failed] = np.nan
    seconds[failed] = np.nan
    space, configs = infer_model_space(pipelines, "Tensor-OBOE")
    experience = Experience.from_matrix(
        space,
        configs,
        [str(task) for task in range(len(errors))],
        [ERROR],
        {ERROR.name: errors},
        seconds=seconds,
        failed=failed,
    )
    return with_records(experience, failed | ~np.isnan(errors))


def _tensor(archive: Archive, member: str) -> Floats:
    """Read (datasets, pipelines); the last step varies fastest."""
    with archive.open(member) as stream:
        try:
            tensor = np.load(stream, allow_pickle=False)["a"]
            flattened: Floats = tensor.reshape(len(tensor), -1).astype(np.float64)
        except (ValueError, KeyError, TypeError, *DAMAGED) as error:
            raise ExperienceError(
                f"'{member}' must hold one array named 'a', but it cannot be read: {error}",
                rule="no-array",
                value=member,
            ) from error
    return flattened


def _pipelines(archive: Archive, member: str) -> list[tuple[ModelPart, ...]]:
    """Return every combination of the steps' settings, in the order of the tensors."""
    with archive.open(member) as stream:
        try:
            steps = json.load(stream)
            return list(itertools.product(*(_settings(steps[step], step) for step in STEPS)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ExperienceError(
                f"'{member}' must be JSON that lists the algorithms of {', '.join(STEPS)} and "
                f"their hyperparameters, but it is not: {error!r}",
                rule="unreadable-algorithms",
                value=member,
            ) from error


def _settings(step: Mapping[str, Any], name: str) -> list[ModelPart]:
    """Return every algorithm of a step with every combination of its hyperparameters."""
    found = []
    for algorithm in step["algorithms"]:
        grid = step["hyperparameters"].get(algorithm, {})
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, map(_number, values), strict=True))
            found.append(ModelPart(name, algorithm or "none", chosen))
    return found


def _number(value: Any) -> Any:
    """Return a share written as '25%' as the number 0.25; anything else as it is."""
    if isinstance(value, str) and value.endswith("%"):
        return float(value.removesuffix("%")) / 100
    return value
