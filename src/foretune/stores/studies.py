"""Opening a study in memory, or in the storage at a URL."""

from collections.abc import Mapping, Sequence
from typing import Any

from foretune._base.names import check_writable
from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.run.study import NOTHING, MemoryStudy, Study
from foretune.space import Space


def open_study(
    url: str | None,
    name: str,
    *,
    space: Space,
    metrics: Sequence[Metric],
    settings: Mapping[str, Any] = NOTHING,
) -> Study:
    """Create the study, or join it if it exists.

    url: None for memory; `sqlite:///PATH`, `postgresql://...`, `mysql://...`; or the path of an
        SQLite file that ends with .db, .sqlite or .sqlite3.
    settings: what else all processes that join must agree on (JSON values).
    """
    if not metrics:
        raise UsageError(
            f"a study needs at least one metric, but '{name}' got none: name one",
            rule="no-metric",
            field="metrics",
            value=name,
        )
    check_writable("study", name)
    if url is None:
        return MemoryStudy(name, space, metrics)
    from foretune.stores.optuna.study import OptunaStudy

    return OptunaStudy.join(url, name, space=space, metrics=metrics, settings=settings)
