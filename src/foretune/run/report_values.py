"""The values of a report, by the names of the study's metrics."""

import math
from collections.abc import Sequence

from foretune.errors import ForetuneWarning
from foretune.experience import Metric
from foretune.run.reports import Report


def read_values(
    report: Report, metrics: Sequence[Metric]
) -> tuple[dict[str, float], ForetuneWarning | None]:
    """Return the values of a report by name, and what the user should hear about them.

    A value without a name is that of the first metric. NaN says that the trial diverged. It is kept
    as the worst infinity, because NaN in a curve stands for a value that was not measured.
    """
    first = metrics[0].name
    values = dict(report.other_values)
    if report.value is not None:
        values.setdefault(first, report.value)
    for metric in metrics:
        if math.isnan(values.get(metric.name, 0.0)):
            values[metric.name] = metric.sign * math.inf
    return values, _problem(report, values, metrics)


def _problem(
    report: Report, values: dict[str, float], metrics: Sequence[Metric]
) -> ForetuneWarning | None:
    names = [metric.name for metric in metrics]
    missing = [name for name in names if name not in values]
    if report.value is not None and len(names) > 1:
        return ForetuneWarning(
            f"a report must name its values if there are several metrics ({', '.join(names)}), but "
            f"got one without a name: it is taken for '{names[0]}'; write  "
            f"trial.report(step, {names[0]}=...)",
            rule="unnamed-report",
            field=names[0],
        )
    if not missing:
        return None
    effect = (
        "such a report decides nothing, because the first metric decides who stops"
        if missing[0] == names[0]
        else "it is kept without it"
    )
    return ForetuneWarning(
        f"a report should hold every metric, but that of step {report.step:g} lacks "
        f"'{missing[0]}' (it holds {', '.join(values)[:80]}): {effect}",
        rule="report-lacks-metric",
        field=missing[0],
        value=report.step,
    )
