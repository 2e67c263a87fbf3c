"""What was tried: evaluations of configurations on many tasks, in one table and one file."""

from foretune.experience.evaluation import (
    Direction,
    Evaluation,
    Metric,
    Status,
    TaskRecords,
    status_of,
)
from foretune.experience.experience import Experience
from foretune.experience.splits import (
    Split,
    find_splits,
    for_learning,
    k_fold,
    learning_split,
    leave_one_out,
    recorded_split,
)
from foretune.experience.summary import summarise

__all__ = [
    "Direction",
    "Evaluation",
    "Experience",
    "Metric",
    "Split",
    "Status",
    "TaskRecords",
    "find_splits",
    "for_learning",
    "k_fold",
    "learning_split",
    "leave_one_out",
    "recorded_split",
    "status_of",
    "summarise",
]
