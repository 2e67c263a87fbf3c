"""What makes two studies the same: all who join one must agree on it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from foretune.errors import SpaceError, UsageError
from foretune.experience import Metric
from foretune.space import Space

ABSENT = "absent"
FORMAT = 1
"""The version of the identity record."""


def identity(
    space: Space, metrics: Sequence[Metric], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The identity of a study, for JSON and back again."""
    record = {
        "format": FORMAT,
        "space": space.to_json(),
        "metrics": [[metric.name, str(metric.direction)] for metric in metrics],
        "settings": dict(settings),
    }
    written: dict[str, Any] = json.loads(json.dumps(record))
    return written


class OtherStudyError(UsageError):
    """A study was begun with something else."""

    def __init__(self, name: str, field: str, difference: str) -> None:
        super().__init__(
            f"who joins a study must agree with it, but in '{name}' {difference}: "
            "choose another name for the study, or what it was begun with",
            rule="other-study",
            field=field,
            value=difference,
        )
        self.difference = difference


def differs_in_metrics_only(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a study is the one that is wanted but for what it measures."""
    other: bool = stored.get("metrics") != wanted["metrics"]
    return other and {**stored, "metrics": wanted["metrics"]} == wanted


def check_same(name: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to join a study that differs, naming the first difference."""
    if stored.get("format") != wanted["format"]:
        raise UsageError(
            f"a study must be of format {FORMAT}, but '{name}' is of format "
            f"{stored.get('format')}: use the version of foretune that began it",
            rule="study-format",
            field=name,
            value=stored.get("format"),
        )
    for field, differ in (
        ("metrics", _metrics_differ),
        ("space", _spaces_differ),
        ("settings", _settings_differ),
    ):
        if difference := differ(stored[field], wanted[field]):
            raise OtherStudyError(name, field, difference)


def _metrics_differ(stored: Any, wanted: Any) -> str:
    def metrics_text(metrics: Any) -> str:
        return ", ".join(f"{name}:{direction}" for name, direction in metrics)

    return (
        ""
        if stored == wanted
        else f"the metric is {metrics_text(stored)}, and here {metrics_text(wanted)}"
    )


def _spaces_differ(stored: str, wanted: str) -> str:
    if stored == wanted:
        return ""
    try:
        theirs, ours = Space.from_json(stored), Space.from_json(wanted)
    except SpaceError:
        return "the space cannot be read"
    if theirs == ours:
        return ""
    before = {p.name: f"{p.kind} {p.allowed_text}" for p in theirs.parameters}
    now = {p.name: f"{p.kind} {p.allowed_text}" for p in ours.parameters}
    found = _first_difference(before, now)
    return f"the hyperparameter {found}" if found else "the conditions of the space are others"


def _settings_differ(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    found = _first_difference(stored, wanted)
    return f"the setting {found}" if found else ""


def _first_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    for name in dict.fromkeys([*before, *now]):
        theirs, ours = before.get(name, ABSENT), now.get(name, ABSENT)
        if theirs != ours:
            return f"'{name}' is {theirs}, and here it is {ours}"
    return ""
