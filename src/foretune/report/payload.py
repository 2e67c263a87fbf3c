"""The trials of a story as compact columns, which the page's script reads."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.experience import Status
from foretune.report.importance import Importance, most_important
from foretune.report.markup import Markup, well_formed
from foretune.report.story import Story
from foretune.space import Encoded, Kind, Parameter, Space

DIGITS = 6
SLICES = 6
LONGEST_TEXT = 400
"""Of a reason in the table: a traceback belongs into a log."""
RUNNING = "3"


@dataclass(frozen=True, slots=True)
class Columns:
    """A story's trials as arrays, in the order of the story."""

    configs: Encoded
    values: Floats
    """(n, metrics), NaN where unknown."""
    losses: Floats
    """(n,): the first metric, minimised; NaN where the trial is not done."""


def columns_of(story: Story) -> Columns:
    """The trials of a story as arrays."""
    configs = story.space.encode([trial.config for trial in story.trials])
    names = [metric.name for metric in story.metrics]
    values = np.array(
        [[trial.values.get(name, math.nan) for name in names] for trial in story.trials],
        dtype=np.float64,
    ).reshape(len(story.trials), len(names))
    values[~np.isfinite(values)] = np.nan
    done = np.array([trial.status is Status.DONE for trial in story.trials], dtype=bool)
    losses = np.where(done, story.metric.sign * values[:, 0], np.nan)
    return Columns(configs, values, losses)


def payload(story: Story, columns: Columns, found: Importance) -> Markup:
    """JSON that may stand inside a script element."""
    names = [p.name for p in story.space.parameters if p.kind is not Kind.CONSTANT]
    ordered = most_important(found, names, len(names))
    place = {parameter.name: index for index, parameter in enumerate(story.space.parameters)}
    rows = {trial.number: row for row, trial in enumerate(story.trials)}
    return in_script(
        {
            "metrics": [[metric.name, str(metric.direction)] for metric in story.metrics],
            "objectives": story.objectives,
            "numbers": _numbers([trial.number for trial in story.trials]),
            "status": "".join(_status(trial.status) for trial in story.trials),
            "values": [_rounded(column) for column in columns.values.T],
            "seconds": _rounded([trial.seconds for trial in story.trials], digits=3),
            "reasons": _words(trial.reason for trial in story.trials),
            "chosen": _words(trial.chosen_by for trial in story.trials),
            "parameters": [
                _parameter(parameter, columns.configs.values[:, index])
                for index, parameter in enumerate(story.space.parameters)
            ],
            "order": [place[name] for name in ordered],
            "slices": SLICES,
            "stages": _stages(story),
            "colour": algorithm_choice(story.space),
            "best": None if story.best is None else rows[story.best],
            "random": _rounded(story.expected_random or ()),
            "map": _map(story, rows),
        }
    )


def algorithm_choice(space: Space) -> int | None:
    """The hyperparameter that says most about a pipeline: the stage with the most algorithms."""
    stages = [stage for stage in space.structure.stages if stage.choice is not None]
    return max(stages, key=lambda stage: len(stage.algorithms)).choice if stages else None


def in_script(data: Any) -> Markup:
    """JSON in ASCII without any character that could end a script element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def choice_text(choice: Any) -> str:
    """A choice as people read it."""
    return shortened(choice if isinstance(choice, str) else repr(choice))


def shortened(text: str) -> str:
    """Well-formed, and not longer than a table can show."""
    text = well_formed(text)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _stages(story: Story) -> list[int]:
    """The choices of stages, in the order of the best pipeline where there is one."""
    order = {step.name: place for place, step in enumerate(story.pipeline)}
    stages = [stage for stage in story.space.structure.stages if stage.choice is not None]
    stages.sort(key=lambda stage: order.get(stage.name, len(order)))
    return [stage.choice for stage in stages if stage.choice is not None]


def _numbers(numbers: Sequence[int]) -> list[int] | None:
    """None stands for 0, 1, 2, ..., the common case."""
    return None if list(numbers) == list(range(len(numbers))) else list(numbers)


def _status(status: Status | None) -> str:
    return RUNNING if status is None else str(int(status))


def _rounded(values: Iterable[float], digits: int = DIGITS) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


def _words(texts: Iterable[str]) -> dict[str, Any]:
    """Texts by their place in a list, because most of them repeat."""
    known: dict[str, int] = {}
    at = [known.setdefault(shortened(text), len(known)) for text in texts]
    return {"words": list(known), "at": at if len(known) > 1 else None}


def _parameter(parameter: Parameter, values: Floats) -> dict[str, Any]:
    active = np.flatnonzero(~np.isnan(values))
    whole = parameter.kind is not Kind.FLOAT
    shown = values[active].astype(np.int64).tolist() if whole else _rounded(values[active])
    return {
        "name": well_formed(parameter.name),
        "kind": str(parameter.kind),
        "log": parameter.log,
        "low": parameter.low,
        "high": parameter.high,
        "choices": [choice_text(choice) for choice in parameter.choices],
        "rows": None if len(active) == len(values) else _gaps(active),
        "values": shown,
    }


def _gaps(rows: Ints) -> list[int]:
    """Ascending rows as differences, which have fewer digits."""
    gaps: list[int] = np.diff(rows, prepend=0).tolist()
    return gaps


def _map(story: Story, rows: dict[int, int]) -> dict[str, Any] | None:
    points = story.embedding
    if not points:
        return None
    # The order of the choices keeps an algorithm's colour the same in all pictures.
    choice = algorithm_choice(story.space)
    known = () if choice is None else story.space.parameters[choice].choices
    names = list(
        dict.fromkeys([*map(choice_text, known), *(shortened(p.algorithm) for p in points)])
    )
    place = {name: index for index, name in enumerate(names)}
    return {
        "x": _rounded(point.x for point in points),
        "y": _rounded(point.y for point in points),
        "names": names,
        "at": [place[shortened(point.algorithm)] for point in points],
        "values": _rounded(math.nan if p.value is None else p.value for p in points),
        "trials": [None if p.trial is None else rows.get(p.trial) for p in points],
    }
