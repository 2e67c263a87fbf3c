"""The space and the metrics of `foretune tune`, read from its options."""

import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretune.cli.past_runs import naming
from foretune.errors import ForetuneWarning, UsageError

if TYPE_CHECKING:
    from foretune.experience import Metric
    from foretune.experience.source_merge import SourcedExperience
    from foretune.space import Space

_LONGER = ("minimise", "minimize", "minimum", "maximise", "maximize", "maximum")

_GROWING = re.compile(
    r"acc|accuracy|auc|auroc|f1|r2|precision|recall|score|reward|map|ndcg|bleu|iou|throughput"
)
"""Parts of names of metrics for which more is usually better."""


def resolve_space(path: Path | None, past: "SourcedExperience | None") -> "Space":
    """Read the space from a file, or take that of past runs."""
    from foretune.space.limits import refuse_depth
    from foretune.space.text_format import parse_space

    if path is None:
        if past is None:
            raise UsageError(
                "tune needs a space, but got no --space: give one, `foretune tune --help` shows how"
            )
        return past.experience.space
    if not path.is_file():
        raise UsageError(
            f"a space must be a JSON file, but there is no file '{path}': write one, "
            "`foretune tune --help` shows how"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        document = json.loads(text)
    except RecursionError:
        refuse_depth()
    except ValueError as error:
        raise UsageError(
            f"a space must be a JSON file, but '{path}' is not ({error}): correct it there"
        ) from None
    if not isinstance(document, dict):
        raise UsageError(
            f"a space must be a JSON object, but '{path}' holds something else: write "
            '{"name": {"range": [low, high]}, ...}'
        )
    space = parse_space(text)
    if not isinstance(document.get("hyperparameters"), list):
        _doubt_pairs(space)
    return space


def _doubt_pairs(space: "Space") -> None:
    """Warn that a list of two numbers is no range."""
    from foretune.space import Kind

    for each in space.parameters:
        if each.kind is Kind.CATEGORICAL and _may_be_bounds(each.choices):
            low, high = each.choices
            told = ForetuneWarning(
                f"'{each.name}' is either {low} or {high}: if you also want values between them, "
                f'stop and write {{"range": [{low}, {high}]}}',
                rule="two-numbers-no-range",
                field=each.name,
                value=(low, high),
            )
            warnings.warn(told, stacklevel=2)


def _may_be_bounds(choices: Sequence[Any]) -> bool:
    if len(choices) != 2 or not all(type(each) in (int, float) for each in choices):
        return False
    low, high = choices
    has_between = isinstance(low, float) or isinstance(high, float) or high - low > 1
    return bool(low < high and has_between)


def resolve_metrics(
    given: Sequence[str], direction: str | None, past: "SourcedExperience | None"
) -> "list[Metric]":
    """Return the metrics to optimise: the given ones, or the first metric of past runs."""
    from foretune.experience import Direction, Metric

    asked = [_name_and_direction(text, direction) for text in given]
    if len(dict(asked)) < len(asked):
        raise UsageError(
            f"each --metric must be named once, but got {', '.join(given)}: leave one out"
        )
    if past is None:
        asked = asked or [("loss", direction)]
        _doubt(asked)
        return [Metric(name, Direction(way or "min")) for name, way in asked]
    asked = asked or [(past.experience.metrics[0].name, direction)]
    with naming(past.source):
        found = past.experience.with_metrics([name for name, _ in asked]).metrics
    for metric, (_, way) in zip(found, asked, strict=True):
        if way is not None and Direction(way) is not metric.direction:
            raise UsageError(
                f"a direction must be that of the experience, but there '{metric.name}' is "
                f"{metric.direction}: leave it out"
            )
    return list(found)


def _doubt(asked: "Sequence[tuple[str, str | None]]") -> None:
    """Warn that a metric is minimised, if its name suggests that more is better."""
    for name, way in asked:
        parts = re.split(r"[^a-z0-9]+", name.lower())
        if way is None and any(map(_GROWING.fullmatch, parts)):
            told = ForetuneWarning(
                f"'{name}' is minimised: if more of it is better, stop and begin another --study "
                f"with --metric {name}:max",
                rule="direction-not-given",
                field=name,
            )
            warnings.warn(told, stacklevel=2)


def _name_and_direction(text: str, usual: str | None) -> tuple[str, str | None]:
    """Split `NAME:min`; a name without a direction gets that of --direction."""
    before, colon, end = text.rpartition(":")
    has_way = colon and end.lower() in ("min", "max")
    if colon and end.lower() in _LONGER:
        raise UsageError(
            f"the direction of a --metric must be min or max, but got '{text}': write "
            f"{before}:{end[:3].lower()}"
        )
    name, way = (before, end.lower()) if has_way else (text, usual)
    if not name.strip():
        raise UsageError(
            f"a --metric must have a name, but got '{text}': write NAME, NAME:min or NAME:max"
        )
    return name, way
