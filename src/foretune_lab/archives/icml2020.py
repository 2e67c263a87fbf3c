"""The tables of the quantile-copula transfer paper (Salinas et al., ICML 2020).

A CSV with the hyperparameters in columns `hp_*`, measurements in `metric_*`, and the columns
`task` and `blackbox`. The archives hold no configuration twice in one task.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from ConfigSpace import (
    CategoricalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from foretune.errors import ExperienceError, UsageError
from foretune.experience import Direction, Experience
from foretune.plugins import SILENT, Progress
from foretune.space import Draft, Space
from foretune.stores import TableColumns, infer_space, need_columns, read_columns

XGBOOST_RANGES = {
    "log2_min_child_weight": (-8.0, 6.0),
    "subsample": (0.5, 1.0),
    "colsample_bytree": (0.3, 1.0),
    "log2_gamma": (-20.0, 6.0),
    "log2_lambda": (-10.0, 8.0),
    "eta": (0.0, 1.0),
    "log2_alpha": (-20.0, 8.0),
}
"""Table 3 of the paper; `log2_` columns hold logarithms, which are kept as they are."""
XGBOOST_DEPTHS = 13
NAS_OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NAS_EDGES = 6
PREFIX = "metric_"
PAPER_METRICS = ("error", "latency")
"""The metrics that the paper minimises. If a file has one of them, its other columns only
describe."""
LOWER_IS_BETTER = ("error", "loss", "crps", "rmse", "mse", "mae", "latency", "runtime", "time")
HIGHER_IS_BETTER = ("accuracy", "auc", "f1", "r2", "precision", "recall")
NO_COLUMNS = TableColumns()


def read(
    source: Path | str, *, columns: TableColumns = NO_COLUMNS, progress: Progress = SILENT
) -> Experience:
    """Read the measurements of the archive `source`, a CSV, also zipped.

    columns: its `values` say which columns `metric_*` are the metrics, with or without the prefix,
        and which way is better. Without them, error and latency are the metrics, or else every
        column `metric_*` whose name says which way is better.

    The paper leaves one task out at a time and has results of nine of XGBoost's ten, which
    docs/benchmarks.md names.
    """
    _check_columns(columns)
    frame = read_columns(source, progress).to_frame()
    need_columns(list(frame.columns), ["task", "blackbox"], source)
    blackbox = _only_blackbox(frame, source)
    configs = _hyperparameters(frame, source)
    if blackbox == "NAS":
        configs = _operations(configs)
    metrics = _find_metrics(frame, columns.values, source)
    table = configs.assign(
        **{name: frame[PREFIX + name] for name in metrics}, task=frame["task"].astype(str)
    )
    return Experience.from_frame(_space(blackbox, configs), table, task="task", metrics=metrics)


def _check_columns(columns: TableColumns) -> None:
    if columns != TableColumns(values=columns.values):
        raise UsageError(
            "the columns of these archives have fixed names, so only the metrics can be chosen: "
            "leave out what is said of other columns",
            rule="foreign-option",
            field="columns",
        )


def _find_metrics(
    frame: pd.DataFrame, chosen: Mapping[str, str], source: Path | str
) -> dict[str, Direction]:
    """Return the metrics, without their prefix, and which way is better."""
    if chosen:
        metrics = {name.removeprefix(PREFIX): Direction(way) for name, way in chosen.items()}
        need_columns(list(frame.columns), [PREFIX + name for name in metrics], source)
        return metrics
    found = [str(name).removeprefix(PREFIX) for name in frame if str(name).startswith(PREFIX)]
    if not found:
        raise ExperienceError(
            f"measurements must stand in columns that begin with '{PREFIX}', but '{source}' has "
            "none",
            rule="no-metric",
            value=str(source),
        )
    paper = [name for name in PAPER_METRICS if name in found]
    return {name: _direction_of(name) for name in paper or found}


def _direction_of(metric: str) -> Direction:
    words = metric.lower().split("_")
    if any(word in LOWER_IS_BETTER for word in words):
        return Direction.MIN
    if any(word in HIGHER_IS_BETTER for word in words):
        return Direction.MAX
    raise ExperienceError(
        f"the name of a metric must say which way is better, but '{metric}' does not: add --value "
        f"{metric}:min or --value {metric}:max, for each metric",
        rule="unknown-direction",
        field=metric,
    )


def _only_blackbox(frame: pd.DataFrame, source: Path | str) -> str:
    names = [str(name) for name in frame["blackbox"].unique()]
    if len(names) != 1:
        raise ExperienceError(
            f"a table must hold one blackbox, but '{source}' holds {', '.join(names)}: "
            "split it into one file each",
            rule="several-blackboxes",
            value=tuple(names),
        )
    return names[0]


def _hyperparameters(frame: pd.DataFrame, source: Path | str) -> pd.DataFrame:
    columns = [str(column) for column in frame.columns if str(column).startswith("hp_")]
    if not columns:
        raise ExperienceError(
            f"the hyperparameters must stand in columns that begin with 'hp_', but '{source}' "
            "has none",
            rule="no-hyperparameter",
            value=str(source),
        )
    return frame[columns].rename(columns=lambda name: name.removeprefix("hp_"))


def _operations(codes: pd.DataFrame) -> pd.DataFrame:
    """Return the names of the operations for their numbers."""
    names = dict(enumerate(NAS_OPERATIONS))
    for edge in codes:
        unknown = codes[edge][~codes[edge].isin(names)]
        if len(unknown):
            raise ExperienceError(
                f"an operation must have a number from 0 to {len(names) - 1}, but '{edge}' has "
                f"{unknown.iloc[0]!r}",
                rule="unknown-operation",
                field=str(edge),
            )
    return pd.DataFrame({edge: codes[edge].map(names) for edge in codes})


def _space(blackbox: str, configs: pd.DataFrame) -> Space:
    if blackbox == "XGBoost":
        return Space.of(_xgboost_space())
    if blackbox == "NAS":
        return Space.of(_nas_space())
    return Space.of(infer_space({str(name): configs[name].tolist() for name in configs}, blackbox))


def _xgboost_space() -> Draft:
    made = Draft(name="XGBoost")
    for name, (low, high) in XGBOOST_RANGES.items():
        made.add(UniformFloatHyperparameter(name, low, high))
    made.add(UniformIntegerHyperparameter("max_depth_index", 0, XGBOOST_DEPTHS - 1))
    return made


def _nas_space() -> Draft:
    made = Draft(name="NAS-Bench-201")
    for edge in range(NAS_EDGES):
        made.add(CategoricalHyperparameter(f"x{edge}", NAS_OPERATIONS))
    return made
