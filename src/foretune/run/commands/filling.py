"""Makes the arguments and variables of a command from a template and a configuration.

There are three ways. None puts a text into anything that a shell reads:

- A template without shell syntax is a list of arguments; no shell is started.
- A template that `template` reads is written anew for the shell. Each value becomes
  "${FORETUNE_VALUE_1}", always in double quotes: a shell replaces it by the value of this variable
  and never reads the value as a command.
- Any other template is given to the shell unchanged. Its placeholders take numbers only.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from foretune.errors import ForetuneError
from foretune.run.commands.places import (
    ASSIGNMENT,
    NUMBER,
    NumberPlace,
    is_builtin,
    is_reserved,
    number_places,
    program_of,
)
from foretune.run.commands.template import (
    Literal,
    Redirection,
    Script,
    SimpleCommand,
    Slot,
    UnreadableError,
    Word,
    read_script,
    split_atoms,
)

__all__ = ["CommandError", "CommandStart", "Plan", "check_passable", "plan_of"]

VALUE_VARIABLE = "FORETUNE_VALUE_{}"
SHELL = "/bin/sh"
OPTION = re.compile(r"--?[^\s=\d.][^\s=]*")


class CommandError(ForetuneError):
    """A command that failed. Its message is the trial's reason."""


class CommandStart(NamedTuple):
    """The arguments and variables for one configuration."""

    arguments: list[str]
    variables: dict[str, str]
    """They are added to those of the environment."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a template is run."""

    template: str
    script: Script | None
    """None if the template is given to the shell unchanged."""
    needs_shell: bool
    number_places: tuple[NumberPlace, ...]
    unread: str = ""
    """The shell syntax that is not read here, if the template holds any."""

    def start(self, config: Mapping[str, Any]) -> CommandStart:
        """Return the arguments and the variables for a configuration."""
        texts = {name: str(value) for name, value in config.items()}
        for name, reason in self.number_places:
            if name in texts and NUMBER.fullmatch(texts[name]) is None:
                raise CommandError(
                    f"the value of '{name}' must be a number, because {reason}",
                    rule="number-place",
                    field=name,
                    value=texts[name],
                )
        if self.script is None:
            return CommandStart([SHELL, "-c", _fill(self.template, texts)], {})
        for name in _slots(self.script):
            check_passable(name, texts.get(name, ""))
        script = _without_inactive(self.script, texts)
        if not self.needs_shell:
            (command,) = script.commands
            words = (item for item in command if isinstance(item, Word))
            return CommandStart([_argument(word, texts) for word in words], {})
        return _for_shell(script, texts)


@lru_cache(maxsize=16)
def plan_of(template: str) -> Plan:
    """Return how a template is run."""
    try:
        script = read_script(template)
        _check_names(script)
    except UnreadableError as error:
        reason = f"the template holds {error}"
        names = dict.fromkeys(each.name for each in split_atoms(template) if isinstance(each, Slot))
        places = tuple(NumberPlace(name, reason) for name in names)
        return Plan(template, None, True, places, unread=str(error))
    return Plan(template, script, _needs_shell(script), tuple(number_places(script)))


def check_passable(name: str, text: str) -> None:
    """Refuse a value that the system can pass to no program."""
    if "\0" in text:
        raise CommandError(
            f"the value of '{name}' holds the character 0, which ends a text",
            rule="null-character",
            field=name,
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CommandError(
            f"the value of '{name}' holds half of a character", rule="half-character", field=name
        ) from None


def _check_names(script: Script) -> None:
    """Refuse commands that a shell does not take for simple ones, or whose name is a value."""
    for command in script.commands:
        program = program_of(command)
        if program is None:
            continue
        if program.slots:
            raise UnreadableError("a placeholder in the name of a program")
        if is_reserved(program):
            raise UnreadableError(f"the word '{program.text}' of the shell's language")


def _needs_shell(script: Script) -> bool:
    if len(script.commands) > 1:
        return True
    (command,) = script.commands
    words = [item for item in command if isinstance(item, Word)]
    return (
        len(words) < len(command)
        or any(word.needs_shell for word in words)
        or ASSIGNMENT.match(words[0].bare_text) is not None
        or is_builtin(words[0].text or "")
    )


def _slots(script: Script) -> Iterator[str]:
    for command in script.commands:
        for item in command:
            word = item.target if isinstance(item, Redirection) else item
            yield from word.slots if word is not None else ()


def _without_inactive(script: Script, texts: Mapping[str, str]) -> Script:
    """Drop each word with an inactive hyperparameter, and the option that it is the value of."""
    commands = tuple(tuple(_active_items(command, texts)) for command in script.commands)
    return Script(commands, script.operators)


def _active_items(command: SimpleCommand, texts: Mapping[str, str]) -> list[Word | Redirection]:
    kept: list[Word | Redirection] = []
    before: Word | Redirection | None = None
    for item in command:
        word = item.target if isinstance(item, Redirection) else item
        if word is None or all(name in texts for name in word.slots):
            kept.append(item)
        elif item is word and kept and kept[-1] is before and _is_option(before):
            kept.pop()
        before = item
    return kept


def _is_option(item: Word | Redirection | None) -> bool:
    if not isinstance(item, Word):
        return False
    written = "".join(part.text if isinstance(part, Literal) else "x" for part in item.parts)
    return item.bare_text.startswith("-") and OPTION.fullmatch(written) is not None


def _argument(word: Word, texts: Mapping[str, str]) -> str:
    """Return a word with its values, for a program that is started without a shell."""
    return "".join(
        texts[part.name] if isinstance(part, Slot) else part.text
        for part in word.parts
        if isinstance(part, Slot | Literal)
    )


def _for_shell(script: Script, texts: Mapping[str, str]) -> CommandStart:
    """Return the script for the shell, which holds no value, and the values as variables."""
    names = list(dict.fromkeys(name for name in _slots(script)))
    variables = {name: VALUE_VARIABLE.format(number) for number, name in enumerate(names, 1)}
    commands = [_write_command(command, variables) for command in script.commands]
    operators = [*script.operators, ""]
    line = " ".join(
        f"{each} {operator}" for each, operator in zip(commands, operators, strict=True)
    )
    values = {variable: texts[name] for name, variable in variables.items()}
    return CommandStart([SHELL, "-c", line], values)


def _write_command(command: SimpleCommand, variables: Mapping[str, str]) -> str:
    written = [
        _write_word(item, variables)
        if isinstance(item, Word)
        else item.arrow + (_write_word(item.target, variables) if item.target else "")
        for item in command
    ]
    return " ".join(written) or ":"


def _write_word(word: Word, variables: Mapping[str, str]) -> str:
    return "".join(_write_part(part, variables) for part in word.parts)


def _write_part(part: Any, variables: Mapping[str, str]) -> str:
    match part:
        case Slot(name):
            return f'"${{{variables[name]}}}"'
        case Literal(text, is_quoted=False):
            return text
        case Literal(text):
            return "'" + text.replace("'", "'\"'\"'") + "'"
        case _:
            return f'"${{{part.name}}}"' if part.is_quoted else f"${{{part.name}}}"


def _fill(template: str, texts: Mapping[str, str]) -> str:
    """Return the template with its numbers."""
    atoms = split_atoms(template)
    missing = [each.name for each in atoms if isinstance(each, Slot) and each.name not in texts]
    if missing:
        raise CommandError(
            f"the configuration has no value of '{missing[0]}'", rule="no-value", field=missing[0]
        )
    return "".join(texts[each.name] if isinstance(each, Slot) else each for each in atoms)
