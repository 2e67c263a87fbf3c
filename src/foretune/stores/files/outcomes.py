"""How evaluations ended, in the words that other tools write into their tables."""

from collections.abc import Iterable, Mapping
from typing import Any

from foretune.errors import ExperienceError
from foretune.experience import Status
from foretune.experience.trial import FINAL_STATUSES
from foretune.stores.files.cell_columns import ColumnCells, as_list
from foretune.stores.files.dropped_rows import NOT_ENDED, say_left_out

OWN = "Foretune"
TOOLS: Mapping[str, Mapping[str, Status | None]] = {
    OWN: {each.name: each for each in FINAL_STATUSES},
    "Optuna": {
        "COMPLETE": Status.DONE,
        "PRUNED": Status.STOPPED,
        "FAIL": Status.FAILED,
        "RUNNING": None,
        "WAITING": None,
    },
    "MLflow": {
        "FINISHED": Status.DONE,
        "FAILED": Status.FAILED,
        "KILLED": Status.FAILED,
        "RUNNING": None,
        "SCHEDULED": None,
    },
    "Ray Tune": {
        "TERMINATED": Status.DONE,
        "ERROR": Status.FAILED,
        "RUNNING": None,
        "PENDING": None,
        "PAUSED": None,
    },
    "SMAC": {
        "SUCCESS": Status.DONE,
        "CRASHED": Status.FAILED,
        "TIMEOUT": Status.TIMEOUT,
        "MEMORYOUT": Status.FAILED,
        "RUNNING": None,
    },
    "W&B": {
        "FINISHED": Status.DONE,
        "CRASHED": Status.FAILED,
        "FAILED": Status.FAILED,
        "KILLED": Status.FAILED,
        "RUNNING": None,
        "PENDING": None,
        "PREEMPTING": None,
        "PREEMPTED": None,
    },
}
"""The words of each tool. None means that an evaluation has not ended."""
WORDS: Mapping[str, Status | None] = {
    word: status for words in TOOLS.values() for word, status in words.items()
} | {str(each.value): each for each in FINAL_STATUSES}


def statuses_of(column: ColumnCells, name: str) -> ColumnCells:
    """Return the Status of each row; empty where an evaluation has not ended.

    name: the name of the column.
    """
    _check_words(column, name)
    return column.map_values(lambda cell: WORDS[_word(cell)])


def check_ended(statuses: ColumnCells, name: str, tasks: ColumnCells) -> None:
    """Warn of rows that have not ended, and refuse a table in which none has.

    name: the name of the status column.
    tasks: the task of each row.
    """
    ended = statuses.present
    say_left_out("rows", NOT_ENDED, tasks.take(~ended).tolist(), stacklevel=5)
    if not ended.any():
        raise ExperienceError(
            f"an experience needs an evaluation that has ended, but by column '{name}' none of "
            f"{len(statuses)} has: import the table again when they have",
            rule="nothing-ended",
            field=name,
            value=len(statuses),
        )


def are_outcomes(column: Iterable[Any]) -> bool:
    """Return whether all cells say how something ended, and one says that it went well."""
    words = {_word(cell) if isinstance(cell, str) else "" for cell in column}
    return words <= {*WORDS} and any(WORDS[word] is Status.DONE for word in words)


def _word(cell: Any) -> str:
    """Return a cell in the form that WORDS have.

    Python may have written the name of a type before it, as in TrialState.COMPLETE. Whole numbers
    in a column with gaps are read as 0.0.
    """
    return str(cell).strip().upper().removesuffix(".0").rpartition(".")[2]


def _check_words(column: ColumnCells, name: str) -> None:
    """Refuse an unknown word or an empty cell. Neither may pass for a success or a failure."""
    unknown = [cell for cell in as_list(column.different) if _word(cell) not in WORDS]
    if unknown:
        own = [each.name for each in FINAL_STATUSES]
        others = [tool for tool in TOOLS if tool != OWN]
        raise ExperienceError(
            f"column '{name}' must say how evaluations ended, in our own words "
            f"({', '.join(own)}) or in those of {', '.join(others[:-1])} or {others[-1]}, but got "
            f"'{unknown[0]}': write {', '.join(own[:-1])} or {own[-1]} instead",
            rule="unknown-outcome",
            field=name,
            value=str(unknown[0]),
        )
    if not column.present.all():
        raise ExperienceError(
            f"every row must say how it ended, but column '{name}' is empty in "
            f"{int((~column.present).sum())} rows: fill them, or leave these rows out",
            rule="row-without-outcome",
            field=name,
        )
