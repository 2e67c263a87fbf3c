"""Small experiences, made by hand or by chance."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from foretune.experience import Direction, Experience, Metric, Status
from foretune.space import Space

FLAT = Space.of({"rate": (1e-4, 1e-1, "log"), "depth": (1, 8)})
CASH = Space.of(
    {"model": {"svm": {"C": (0.1, 10.0, "log")}, "tree": {"depth": (1, 8)}, "naive": {}}}
)
ERROR = Metric("error", Direction.MIN)
ACCURACY = Metric("accuracy", Direction.MAX)
NAN = np.nan


def small() -> Experience:
    """Two tasks and three configurations; the rows are given out of order."""
    configs = FLAT.encode([{"rate": 1e-3, "depth": d} for d in (1, 2, 3)])
    return Experience.build(
        FLAT,
        [ERROR, ACCURACY],
        ["iris", "wine"],
        task_index=[1, 0, 0, 1, 0],
        configs=configs,
        config_index=[2, 0, 1, 0, 2],
        values=[[0.5, 0.6], [0.3, 0.7], [NAN, NAN], [0.4, NAN], [0.1, 0.9]],
        seconds=[5, 1, 2, 4, 3],
        meta_features={"iris": {"rows": 150.0, "skew": NAN}},
        splits={"paper": {"train": ["iris"], "test": ["wine"]}},
        starts={"wine": {"first": [2, 0]}},
    )


def one_metric(tasks: dict[str, list[float]], metric: Metric = ERROR) -> Experience:
    """Task -> the values of the configurations of depth 1, 2, ..."""
    n = max(len(values) for values in tasks.values())
    configs = FLAT.encode([{"rate": 1e-3, "depth": d + 1} for d in range(n)])
    matrix = np.array([values + [NAN] * (n - len(values)) for values in tasks.values()])
    return Experience.from_matrix(FLAT, configs, list(tasks), [metric], {metric.name: matrix})


def rows_of(experience: Experience) -> list[tuple[Any, ...]]:
    """Every evaluation in a form that can be compared and sorted, NaN as text."""
    configs = experience.configs.dicts()
    names = [metric.name for metric in experience.metrics]
    fidelity = experience.fidelity
    return [
        (
            experience.tasks[experience.task_index[i]],
            str(configs[experience.config_index[i]]),
            str(dict(zip(names, experience.values[i].tolist(), strict=True))),
            Status(experience.status[i]).name,
            str(experience.seconds[i]),
            "None" if fidelity is None else str(fidelity[i]),
        )
        for i in range(len(experience))
    ]


def notes_of(experience: Experience) -> str:
    """Everything beside the rows, as text; initial designs by configuration."""
    configs = experience.configs.dicts()
    starts = {
        task: {name: [configs[i] for i in indices] for name, indices in designs.items()}
        for task, designs in experience.starts.items()
    }
    return str((experience.metrics, experience.meta_features, experience.splits, starts))


@st.composite
def experiences(
    draw: st.DrawFn, space: Space = CASH, metrics: tuple[Metric, ...] = (ERROR, ACCURACY)
) -> Experience:
    """Any small experience: gaps, failures, repeats, infinities, configurations without rows."""
    tasks = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True))
    configs = space.sample(draw(st.integers(1, 6)), seed=draw(st.integers(0, 3)))
    n = draw(st.integers(1, 12))
    number = st.one_of(st.floats(-1e6, 1e6), st.just(NAN), st.just(np.inf))
    values = draw(
        st.lists(
            st.lists(number, min_size=len(metrics), max_size=len(metrics)), min_size=n, max_size=n
        )
    )
    values[0] = [0.25] * len(metrics)
    status = draw(st.lists(st.sampled_from([0, 0, 1, 2]), min_size=n, max_size=n))
    status[0] = 0
    times = st.lists(st.floats(0, 100, width=32), min_size=n, max_size=n)

    def index(size: int) -> np.ndarray[Any, Any]:
        positions = st.lists(st.integers(0, size - 1), min_size=n, max_size=n)
        return np.array(draw(positions), dtype=np.int64)

    return Experience.build(
        space,
        metrics,
        tasks,
        index(len(tasks)),
        configs,
        index(len(configs)),
        np.array(values),
        status=status,
        seconds=draw(times),
        fidelity=draw(st.one_of(st.none(), times)),
        meta_features={tasks[0]: {"rows": draw(st.floats(0, 1e6)), "unknown": NAN}},
        starts={tasks[-1]: {"first": [0, len(configs) - 1]}},
    )
