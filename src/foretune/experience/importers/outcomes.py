"""How evaluations ended, in the words that other tools write into their tables."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from foretune.errors import ExperienceError
from foretune.experience import Status
from foretune.experience.frame import with_columns
from foretune.experience.importers.left_out import NOT_ENDED, say_left_out

OWN = "Foretune"
TOOLS: Mapping[str, Mapping[str, Status | None]] = {
    OWN: {each.name: each for each in Status},
    "Optuna": {
        "COMPLETE": Status.DONE,
        "PRUNED": Status.FAILED,
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
"""What each tool calls them; None where an evaluation has not ended."""
WORDS: Mapping[str, Status | None] = {
    word: status for words in TOOLS.values() for word, status in words.items()
} | {str(each.value): each for each in Status}


def ended_rows(frame: pd.DataFrame, column: str, task: str) -> pd.DataFrame:
    """The rows that have ended, and in `column` how, in our own words.

    task: the column that names the tasks.
    """
    words = frame[column].map(_word)
    _check_words(frame[column], words)
    statuses = [WORDS[word] for word in words]
    ended = np.array([status is not None for status in statuses])
    say_left_out("rows", NOT_ENDED, frame[task][~ended].astype(str).tolist(), stacklevel=4)
    if not ended.any():
        raise ExperienceError(
            f"an experience needs an evaluation that has ended, but by column '{column}' none of "
            f"{len(frame)} has: import the table again when they have"
        )
    names = [status.name for status in statuses if status is not None]
    return with_columns(frame[ended], {column: np.array(names, dtype=object)})


def are_outcomes(column: Iterable[Any]) -> bool:
    """Whether all cells are words for how something ended, and one says that it went well."""
    words = {_word(cell) if isinstance(cell, str) else "" for cell in column}
    return words <= {*WORDS} and any(WORDS[word] is Status.DONE for word in words)


def _word(cell: Any) -> str:
    """A cell as WORDS have it.

    Python may have written the name of a type before it, as in TrialState.COMPLETE; numbers beside
    a gap are read as 0.0.
    """
    return str(cell).strip().upper().removesuffix(".0").rpartition(".")[2]


def _check_words(column: "pd.Series[Any]", words: "pd.Series[Any]") -> None:
    """Refuse what says nothing: it must pass neither for a success nor for a failure."""
    unknown = ~words.isin(list(WORDS))
    if not unknown.any():
        return
    if column[unknown].isna().all():
        raise ExperienceError(
            f"every row must say how it ended, but column '{column.name}' is empty in "
            f"{int(unknown.sum())} rows: fill them, or leave these rows out"
        )
    own = [each.name for each in Status]
    others = [tool for tool in TOOLS if tool != OWN]
    raise ExperienceError(
        f"column '{column.name}' must say how evaluations ended, in our own words "
        f"({', '.join(own)}) or in those of {', '.join(others[:-1])} or {others[-1]}, but got "
        f"'{column[unknown].dropna().iloc[0]}': write {', '.join(own[:-1])} or {own[-1]} instead"
    )
