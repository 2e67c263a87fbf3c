"""Carry past runs over to the space and the metrics that are tuned."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from foretune.cli.past_run_names import parse_assumptions
from foretune.cli.past_runs import PastRuns
from foretune.errors import ExperienceError

if TYPE_CHECKING:
    from foretune.experience import Experience, Metric
    from foretune.experience.alignment.carry_over import CarriedExperience
    from foretune.experience.source_merge import SourcedExperience
    from foretune.space import Space

REASONS_SAID = 3
"""How many reasons are printed why studies do not fit. Other studies are only named."""


def carry_over_past(
    past: PastRuns,
    space: "Space",
    metrics: "Sequence[Metric]",
    assumed: Sequence[str],
    missing: str = "default",
) -> "CarriedExperience[Experience] | None":
    """Carry past runs over to the space and metrics that are tuned. Print what is not used."""
    from foretune._base.names import quote_names
    from foretune.experience.alignment.carry_over import carry_over
    from foretune.experience.alignment.translation import encode_assumptions

    values = parse_assumptions(assumed, space)
    encode_assumptions(space, values)
    carry = partial(carry_over, space=space, assumed=values, missing=missing)
    found = _merge_parts(past, metrics, carry)
    _say_unfit(past.unfit)
    if found is not None and not found.is_whole:
        told = found.describe()
        click.echo(f"{told[0].upper()}{told[1:]}{_hint(found)}.", err=True)
    if found is not None and found.in_vain:
        in_vain = quote_names(found.in_vain)
        click.echo(
            f"--assume of {in_vain} changes nothing: past runs have recorded a value.", err=True
        )
    return found


def _hint(found: "CarriedExperience[Experience]") -> str:
    """Say which options would make more of the past runs usable."""
    hints = []
    if found.unknown:
        other_name = ", or its old name with --rename OLD=NEW" if found.gone else ""
        hints.append(f"give the value they used with --assume NAME=VALUE{other_name}")
    chosen = (p.name for p in found.experience.space.parameters if not p.is_number)
    if name := next((name for name in chosen if name in found.outside), None):
        hints.append(f"give a choice its new name with --rename {name}:OLD=NEW")
    return "".join(f"; {hint}" for hint in hints)


def _say_unfit(unfit: Sequence[tuple[str, ExperienceError]]) -> None:
    """Print how many studies are not used and why. The most frequent reason comes first."""
    from foretune._base.names import quote_names

    by_reason: dict[str, list[str]] = {}
    for name, error in unfit:
        by_reason.setdefault(str(error), []).append(name)
    reasons = sorted(by_reason.items(), key=lambda reason: -len(reason[1]))
    for why, names in reasons[:REASONS_SAID]:
        click.echo(f"{_studies(names)} not fit, such as '{names[0]}': {why}.", err=True)
    others = [name for _, names in reasons[REASONS_SAID:] for name in names]
    if others:
        click.echo(
            f"{_studies(others)} not fit for other reasons: {quote_names(others)}.", err=True
        )


def _studies(names: Sequence[str]) -> str:
    """Return how many studies these are, as the beginning of a sentence with "not"."""
    return f"{len(names)} past {'study does' if len(names) == 1 else 'studies do'}"


def _merge_parts(
    past: PastRuns,
    metrics: "Sequence[Metric]",
    carry: "Callable[[Experience], CarriedExperience[Experience]]",
) -> "CarriedExperience[Experience] | None":
    """Carry over all past runs that fit, and merge them."""
    from foretune.experience.alignment.carry_over import join_carried
    from foretune.experience.source_merge import keep_distinct_tasks

    measured = [
        replace(part, experience=known)
        for part, known in past.apply(
            lambda known: _select_metrics(known, metrics),
            _assume_metric_names(past.parts, metrics),
        )
    ]
    found = list(past.apply(carry, keep_distinct_tasks(measured)))
    _report_unnamed_metrics([part for part, _ in found], metrics)
    return join_carried([each for _, each in found]) if found else None


def _report_unnamed_metrics(
    parts: "Sequence[SourcedExperience]", metrics: "Sequence[Metric]"
) -> None:
    """Print how many of the studies in use do not name their metrics."""
    from foretune._base.names import quote_names

    nameless = [part.experience.tasks[0] for part in parts if part.is_nameless]
    if nameless:
        told = quote_names([metric.name for metric in metrics])
        click.echo(f"{_studies(nameless)} not name a metric: taken for {told}.", err=True)


def _assume_metric_names(
    parts: "Sequence[SourcedExperience]", metrics: "Sequence[Metric]"
) -> "list[SourcedExperience]":
    """Give studies without names of metrics those that are tuned.

    Optuna does not ask for names, so few of its studies have them.
    """
    from foretune.stores.optuna.stored_studies import default_metric_names

    names = default_metric_names(len(metrics))
    if names == tuple(metric.name for metric in metrics):
        return list(parts)
    return [
        replace(part, experience=_rename_metrics(part.experience, metrics), is_nameless=True)
        if not part.is_file and tuple(metric.name for metric in part.experience.metrics) == names
        else part
        for part in parts
    ]


def _rename_metrics(known: "Experience", metrics: "Sequence[Metric]") -> "Experience":
    """Rename the metrics of past runs, and keep their directions."""
    pairs = zip(known.metrics, metrics, strict=True)
    return replace(known, metrics=tuple(replace(own, name=each.name) for own, each in pairs))


def _select_metrics(known: "Experience", metrics: "Sequence[Metric]") -> "Experience":
    """Keep the metrics that are tuned."""
    measured = known.with_metrics([metric.name for metric in metrics])
    for own, metric in zip(measured.metrics, metrics, strict=True):
        if own != metric:
            raise ExperienceError(
                f"past runs must mean the same by '{metric.name}', but some are for "
                f"{own.direction} and the search is for {metric.direction}: leave them out",
                rule="other-direction",
                field="--experience",
                value=metric.name,
            )
    return measured
