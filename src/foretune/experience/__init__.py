"""What was tried: evaluations of configurations on many tasks, in one table and one file."""

from foretune.experience.model import (
    Direction,
    Evaluation,
    Experience,
    Metric,
    Status,
    TaskRecords,
)
from foretune.experience.splits import Split, k_fold, leave_one_out, named_split
from foretune.experience.summary import summarise

__all__ = [
    "Direction",
    "Evaluation",
    "Experience",
    "Metric",
    "Split",
    "Status",
    "TaskRecords",
    "k_fold",
    "leave_one_out",
    "named_split",
    "summarise",
]
