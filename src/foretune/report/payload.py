"""The trials of a story as compact columns for the page's script."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Bools, Floats, Ints
from foretune.experience import Status
from foretune.report.colours import colour_key, colours_of
from foretune.report.curves import unbeaten, visible_range
from foretune.report.importance import Importance
from foretune.report.markup import Markup, replace_surrogates
from foretune.report.story import Story
from foretune.report.thinning import choose_drawn, thin_curve
from foretune.report.trial_curves import PastBand, draw_curves
from foretune.report.wording import shorten
from foretune.space import Encoded, Kind, Parameter

DIGITS = 6
MOST_SLICES = 6
MOST_COLUMNS = 8
"""Hyperparameters with a column of their own in the table of trials. Others share one."""
LONGEST_TEXT = 400
"""The longest reason in the table. A traceback belongs in a log."""
RUNNING, PAUSED = "4", "5"
"""Statuses of trials that have not ended, beside the numbers of `Status`."""
HUGE = 1e300
"""Values beyond this cannot be drawn, and count as unknown."""


@dataclass(frozen=True, slots=True)
class StoryColumns:
    """The trials of a story as arrays, in the order of the story."""

    drawn: Ints
    """(m,), ascending rows of the trials that the page shows."""
    sampled: Bools
    """(m,), which of these are a fair sample of all trials."""
    configs: Encoded
    """The configurations of the trials that the page shows."""
    values: Floats
    """(n, metrics), values of all trials, NaN where unknown."""
    losses: Floats
    """(n, metrics), minimised; NaN where the trial is not done."""


def columns_of(story: Story, *, seed: int = 0) -> StoryColumns:
    """Return the trials of a story as arrays."""
    names = [metric.name for metric in story.metrics]
    values = np.array(
        [[trial.values.get(name, math.nan) for name in names] for trial in story.trials],
        dtype=np.float64,
    ).reshape(len(story.trials), len(names))
    values[~(np.abs(values) < HUGE)] = np.nan
    done = np.array([trial.status is Status.DONE for trial in story.trials], dtype=bool)
    signs = np.array([metric.sign for metric in story.metrics])
    losses = np.where(done[:, None], signs * values, np.nan)
    drawn, sampled = choose_drawn(story, losses, seed=seed)
    configs = story.space.encode([story.trials[row].config for row in drawn])
    return StoryColumns(drawn, sampled, configs, values, losses)


def payload(story: Story, columns: StoryColumns, found: Importance) -> Markup:
    """Return JSON that may stand inside a script element."""
    trials = [story.trials[row] for row in columns.drawn]
    rows = {trial.number: row for row, trial in enumerate(trials)}
    places, random_curve = thin_curve(_random_shown(story))
    return in_script(
        {
            "metrics": _metrics(story, columns),
            "total": len(story.trials),
            "places": _numbers(columns.drawn.tolist()),
            "numbers": _numbers([trial.number for trial in trials]),
            "status": "".join(_status(trial.status) for trial in trials),
            "seconds": _round_values([trial.seconds for trial in trials], digits=3),
            "reasons": _words(trial.reason for trial in trials),
            "chosen": _words(trial.chosen_by for trial in trials),
            "best": None if story.best is None else rows[story.best],
            "superlative": story.superlative,
            "random": _round_values(random_curve),
            "randomPlaces": _numbers(places),
            **(_front(story, columns) if story.objectives > 1 else {}),
            **_hyperparameters(story, columns, found),
            **_algorithms(story, columns.configs, rows),
            "curves": _curves(story, columns),
        }
    )


def _curves(story: Story, columns: StoryColumns) -> dict[str, Any] | None:
    """Return what trials reported, and the band of past trials; None if nothing was reported."""
    trials, past = [story.trials[row] for row in columns.drawn], story.past_curves
    curves = draw_curves(trials, story.metric)
    if curves is None:
        return None
    return {
        "lengths": list(curves.lengths),
        "steps": _round_values(curves.steps),
        "values": _round_values(curves.values),
        "shown": asdict(curves.shown),
        "past": None if past is None else _band(past),
    }


def _band(past: PastBand) -> dict[str, Any]:
    columns = {"steps": past.steps, "low": past.low, "middle": past.middle, "high": past.high}
    rounded = {name: _round_values(column) for name, column in columns.items()}
    return {**rounded, "trials": past.trials, "tasks": past.tasks}


def _metrics(story: Story, columns: StoryColumns) -> list[dict[str, Any]]:
    """Return what was measured, and the part of it that pictures show."""
    described = []
    for place, metric in enumerate(story.metrics):
        # The end of random search belongs into the picture, even if it lies far below the trials.
        also = _random_shown(story)[-1:] if place == 0 else []
        values = columns.values[:, place]
        done = np.where(np.isfinite(columns.losses[:, place]), values, np.nan)
        shown = visible_range(done, metric.direction, also)
        described.append(
            {
                "name": replace_surrogates(metric.name),
                "sign": int(metric.sign),
                "values": _round_values(values[columns.drawn]),
                **asdict(shown),
            }
        )
    return described


def _front(story: Story, columns: StoryColumns) -> dict[str, Any]:
    """Return the trials that no other beats in the first two metrics, and a picture of them.

    The ends of a front are bad in one of the metrics, and would lie outside other pictures.
    """
    front = unbeaten(columns.losses[:, :2])
    done = np.where(np.isfinite(columns.losses), columns.values, np.nan)
    ranges = [
        visible_range(done[:, place], metric.direction, done[front, place].tolist())
        for place, metric in enumerate(story.metrics[:2])
    ]
    return {
        "front": np.searchsorted(columns.drawn, front).tolist(),
        "frontRanges": [asdict(shown) for shown in ranges],
    }


def _random_shown(story: Story) -> list[float]:
    """Return the curve of random search while the trials go on, with at least two points."""
    return story.random_curve[: max(len(story.trials), 2)]


def _hyperparameters(story: Story, columns: StoryColumns, found: Importance) -> dict[str, Any]:
    """Return all hyperparameters, and their positions in the parts of the page that show them."""
    configs, parameters = columns.configs, story.space.parameters
    names = [p.name for p in parameters if p.kind is not Kind.CONSTANT]
    known = [effect.parameter for effect in found.effects]
    order = [story.space.names.index(name) for name in dict.fromkeys([*known, *names])]
    done = np.isfinite(columns.losses[columns.drawn, 0])
    stages = _stages(story)
    others = [index for index in order if index not in stages]
    common = [index for index in others if 2 * configs.active[:, index].sum() >= len(configs)]
    shown = [*stages, *common[:MOST_COLUMNS]]
    return {
        "parameters": [
            _parameter(parameter, configs.values[:, index])
            for index, parameter in enumerate(parameters)
        ],
        "telling": sorted(order, key=lambda index: index != story.naming),
        "slices": [i for i in order if _varies(configs.values[done, i])][:MOST_SLICES],
        "columns": shown,
        "rest": [index for index in others if index not in shown],
    }


def _algorithms(story: Story, configs: Encoded, rows: dict[int, int]) -> dict[str, Any]:
    """Return the algorithms with the colours of all pictures, and the map of pipelines."""
    choice = story.naming
    tried = [] if choice is None else list(map(_text, story.space.parameters[choice].choices))
    points = story.embedding or ()
    mapped = [_text(point.algorithm) for point in points]
    # Values count by index, because two choices may have the same text.
    names = tried + [name for name in dict.fromkeys(mapped) if name not in tried]
    at = [names.index(name) for name in mapped]
    on_map = np.bincount(np.array(at, dtype=np.int64), minlength=len(names))
    in_trials = np.zeros_like(on_map)
    if choice is not None:
        values = configs.values[configs.active[:, choice], choice]
        in_trials = np.bincount(values.astype(np.int64), minlength=len(names))
    # Algorithms that were tried come first; the map decides about the others.
    colours = colours_of(in_trials + on_map / (1 + len(at)))
    return {
        "algorithm": -1 if choice is None else choice,
        "colours": colours,
        "keys": {
            "trials": colour_key(names, colours, in_trials),
            "map": colour_key(names, colours, on_map),
        },
        "map": _map(story, names, at, rows) if points else None,
    }


def in_script(data: Any) -> Markup:
    """Return JSON in ASCII that can neither end a script element nor begin a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _stages(story: Story) -> list[int]:
    """Return the choices of stages, in the order of the best pipeline if there is one."""
    order = {step.name: place for place, step in enumerate(story.pipeline)}
    stages = [stage for stage in story.space.structure.stages if stage.choice is not None]
    stages.sort(key=lambda stage: order.get(stage.name, len(order)))
    return [stage.choice for stage in stages if stage.choice is not None]


def _text(given: Any) -> str:
    """Return any value as a short text for a table."""
    return shorten(replace_surrogates(str(given)), LONGEST_TEXT)


def _numbers(numbers: Sequence[int]) -> list[int] | None:
    """Return the numbers, or None for the frequent case 0, 1, 2, ..."""
    return None if list(numbers) == list(range(len(numbers))) else list(numbers)


def _status(status: Status) -> str:
    if status.is_final:
        return str(int(status))
    return PAUSED if status is Status.PAUSED else RUNNING


def _round_values(values: Iterable[float], digits: int = DIGITS) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


def _words(texts: Iterable[str]) -> dict[str, Any]:
    """Return texts as a list of different texts and positions in it, because most repeat."""
    known: dict[str, int] = {}
    at = [known.setdefault(_text(text), len(known)) for text in texts]
    return {"known": list(known) or [""], "at": at if len(known) > 1 else None}


def _parameter(parameter: Parameter, values: Floats) -> dict[str, Any]:
    active = np.flatnonzero(~np.isnan(values))
    whole = parameter.kind is not Kind.FLOAT
    shown = values[active].astype(np.int64).tolist() if whole else _round_values(values[active])
    owner, _, own = replace_surrogates(parameter.name).rpartition(":")
    return {
        "name": replace_surrogates(parameter.name),
        "owner": owner.replace(":", " / "),
        "own": own,
        "log": parameter.log,
        "whole": parameter.kind is Kind.INT,
        "low": parameter.low,
        "high": parameter.high,
        "choices": [_text(choice) for choice in parameter.choices],
        "rows": None if len(active) == len(values) else _gaps(active),
        "values": shown,
    }


def _gaps(rows: Ints) -> list[int]:
    """Return ascending rows as differences, which have fewer digits."""
    gaps: list[int] = np.diff(rows, prepend=0).tolist()
    return gaps


def _map(
    story: Story, names: Sequence[str], at: Sequence[int], rows: dict[int, int]
) -> dict[str, Any]:
    points = story.embedding or ()
    values = np.array([math.nan if p.value is None else p.value for p in points], dtype=np.float64)
    return {
        "x": _round_values(point.x for point in points),
        "y": _round_values(point.y for point in points),
        "names": names,
        "algorithms": at,
        "values": _round_values(values),
        "shares": _round_values(_rank_shares(-story.metric.sign * values), digits=3),
        "trials": [None if p.trial is None else rows.get(p.trial) for p in points],
    }


def _rank_shares(values: Floats) -> Floats:
    """Return ranks from 0 for the least to 1 for the largest, because values may be far apart."""
    shares = np.full(len(values), np.nan)
    known = np.flatnonzero(np.isfinite(values))
    ranks = rankdata(values[known], method="average")
    shares[known] = (ranks - 1) / (len(known) - 1) if len(known) > 1 else 1.0
    return shares


def _varies(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return len(known) > 0 and float(np.ptp(known)) > 0
