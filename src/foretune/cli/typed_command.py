"""The command as it was typed, for reports that say how to repeat it."""

import shlex
import sys
from collections.abc import Sequence


def command_words(typed: Sequence[str] | None = None) -> list[str]:
    """Return what was typed after the program's name, without passwords: reports are shared."""
    from foretune._base.databases import hide_passwords

    return [hide_passwords(word) for word in (sys.argv if typed is None else typed)[1:]]


def command_of(words: Sequence[str]) -> str:
    """Return the command line of these words."""
    return shlex.join(["foretune", *words])


def with_trials(words: Sequence[str], trials: int) -> str:
    """Return the command line of these words with another number of trials."""
    left = iter(words)
    others = []
    for word in left:
        if word == "--trials":
            next(left, None)
        elif not word.startswith("--trials="):
            others.append(word)
    return command_of([*others, "--trials", str(trials)])


def moment() -> str:
    """Return the date and time, for reports."""
    from datetime import datetime

    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
