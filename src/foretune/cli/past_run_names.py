"""The options --rename and --assume of `foretune tune`: new names and values for past runs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foretune.cli.past_runs import PastRuns
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience
    from foretune.space import Space

NOT_A_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
"""What may be raised when a value is read as Python writes it."""


def rename(past: PastRuns, texts: Sequence[str]) -> None:
    """Rename hyperparameters of past runs by OLD=NEW, and choices by NAME:OLD=NEW."""
    renamings = _new_names(texts)
    for old in renamings:
        if past.parts and all(_place(old, part.experience.space) is None for part in past.parts):
            _refuse_unknown(old, past)

    def align(known: "Experience") -> "Experience":
        names: dict[str, str] = {}
        choices: dict[str, dict[Any, Any]] = {}
        for old, new in renamings.items():
            match _place(old, known.space):
                case str(name):
                    names[name] = new
                case (name, choice):
                    now = new if isinstance(choice, str) else _value(new)
                    choices.setdefault(name, {})[choice] = now
        return known.renamed(names, choices=choices) if names or choices else known

    parts = past.apply(align, past.parts)
    past.parts = [replace(part, experience=known) for part, known in parts]


def _new_names(texts: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in texts:
        old, is_one, new = text.partition("=")
        if not (old and is_one and new):
            raise UsageError(
                f"--rename needs two names, but got '{text}': write OLD=NEW, or NAME:OLD=NEW for a "
                "choice",
                rule="not-two-names",
                field="--rename",
                value=text,
            )
        if old in names:
            raise UsageError(
                f"--rename must name each hyperparameter once, but got '{old}' twice: leave one "
                "out",
                rule="renamed-twice",
                field="--rename",
                value=old,
            )
        names[old] = new
    return names


def _place(old: str, space: "Space") -> str | tuple[str, Any] | None:
    """Find the hyperparameter of this name, or the hyperparameter and choice; None without any."""
    if old in space.names:
        return old
    for parameter in space.parameters:
        for choice in parameter.choices:
            if old == f"{parameter.name}:{choice}":
                return parameter.name, choice
    return None


def _refuse_unknown(old: str, past: PastRuns) -> None:
    from foretune._base.names import suggestion

    spaces = [part.experience.space for part in past.parts]
    names = {name for space in spaces for name in space.names}
    choices = {f"{p.name}:{c}" for space in spaces for p in space.parameters for c in p.choices}
    raise UsageError(
        f"--rename needs a hyperparameter of past runs, or a choice of one, but none has '{old}': "
        f"{suggestion(old, sorted(names | choices if ':' in old else names))}",
        rule="unknown-hyperparameter",
        field="--rename",
        value=old,
    )


def parse_assumptions(texts: Sequence[str], space: "Space") -> dict[str, Any]:
    """Return the value that each NAME=VALUE assumes, by name."""
    values: dict[str, Any] = {}
    for text in texts:
        name, value = _parse_assumption(text, space)
        if name in values:
            raise UsageError(
                f"--assume must name each hyperparameter once, but got '{name}' twice: leave one "
                "out",
                rule="assumed-twice",
                field="--assume",
                value=name,
            )
        values[name] = value
    return values


def _parse_assumption(text: str, space: "Space") -> tuple[str, Any]:
    """Split NAME=VALUE, and read the value as one of the hyperparameter."""
    name, is_one, value = text.partition("=")
    if not is_one:
        raise UsageError(
            f"--assume needs a hyperparameter and its value, but got '{text}': write NAME=VALUE",
            rule="not-name-and-value",
            field="--assume",
            value=text,
        )
    choices = next((each.choices for each in space.parameters if each.name == name), ())
    if (same := next((each for each in choices if str(each) == value), None)) is not None:
        return name, same
    return name, _value(value)


def _value(text: str) -> Any:
    """Read a value as Python does, or return the text."""
    from foretune.stores.files.python_literals import read_literal

    try:
        return read_literal(text)
    except NOT_A_LITERAL:
        return text
