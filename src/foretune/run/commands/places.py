"""Where a text may stand in a command, and where only a number may.

A value always reaches the program as one argument, or as a part of one. This is not enough if the
argument is code, as for `eval`, `sh -c` and `awk`. A number is harmless there, so numbers are
allowed everywhere. Other values are refused in these places. The builtins of shells are a closed
list, so nothing is missed inside the shell itself. Of programs that take code, the well-known ones
are listed: Foretune cannot know what another program does with its arguments.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from foretune.run.commands.template import Literal, Redirection, Script, SimpleCommand, Word

__all__ = [
    "ASSIGNMENT",
    "NUMBER",
    "NumberPlace",
    "is_builtin",
    "is_reserved",
    "number_places",
    "program_of",
]

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number, written so that no shell and no program can take it for anything else."""

RESERVED = frozenset(
    """if then else elif fi case esac for select while until do done in function time coproc [[ ]]
    repeat foreach end always nocorrect noglob""".split()  # noqa: SIM905 (a list is unreadable)
)
"""Words by which shells recognise commands that are not simple."""
TEXT_BUILTINS = frozenset((":", "cd", "echo", "false", "true"))
"""Builtins that never run an argument."""
BUILTINS = TEXT_BUILTINS | frozenset(
    """. [ alias autoload bg bind break builtin caller chdir command compdef compgen complete
    compopt continue declare dirs disable disown echotc echoti emulate enable eval exec exit export
    fc fg float functions getln getopts hash help hist history integer jobs kill let limit local
    logout mapfile newgrp popd print printf pushd pushln pwd read readarray readonly rehash return
    sched set setopt shift shopt source stop suspend test times trap ttyctl type typeset ulimit
    umask unalias unfunction unhash unlimit unset unsetopt vared wait whence where which zcompile
    zle zmodload zparseopts zregexparse zstyle""".split()  # noqa: SIM905 (a list is unreadable)
)
"""The builtins of dash, bash, BusyBox, ksh and zsh."""
SHELL = re.compile(
    r"(?:|a|ba|rba|da|z|k|mk|pdk|c|tc|fi|ya|elvi|pw)sh(?:\.exe)?|busybox|toybox|powershell"
)
LANGUAGE = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|julia|Rscript|R|tclsh|guile|"
    r"octave|osascript|scala|groovy|elixir|erl|ghc|swipl)[0-9.]*(?:\.exe)?",
)
LAUNCHER = re.compile(
    r"env|nice|nohup|time|timeout|stdbuf|setsid|ionice|taskset|chrt|numactl|sudo|doas|srun|mpirun|"
    r"mpiexec|xvfb-run|catchsegv|strace|ltrace|unshare|chroot|flock|docker|podman|kubectl|"
    r"singularity|apptainer|conda|mamba|micromamba|poetry|pipenv|pdm|uv|hatch|accelerate|torchrun"
)
"""Programs that run the program which their arguments name."""
CODE_READER = re.compile(
    r"[gmn]?awk|g?sed|jq|bc|dc|find|xargs|parallel|ssh|rsh|su|runuser|watch|g?make|ninja|just|"
    r"script|tmux|screen|sbatch|qsub|bsub|at|batch|expect|n?vim?|ex|ed|emacs|gdb|lldb|m4|"
    r"sqlite3|psql|mysql|mariadb|duckdb"
)
"""Programs that take code, or command lines, in any of their arguments."""
CODE_OPTION = re.compile(r"-[A-Za-z]*[ceEprBRx]|--(?:command|eval|exec|execute|print|run|wrap)")
CODE_OF_SHELL = re.compile(r"-[A-Za-z]*c")
"""An option of a shell that comes with its code, as in -c'echo 1'."""
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
SETTING = re.compile(r"-.*|[0-9.]+[smhd]?", re.DOTALL)
"""Options of a launcher, and their values, which come before the program."""


class NumberPlace(NamedTuple):
    """A place where only a number may stand."""

    name: str
    """The name of the hyperparameter."""
    reason: str


def is_builtin(word: str) -> bool:
    """Return True if a command of this name is the shell's own."""
    return word in BUILTINS


def is_reserved(word: Word) -> bool:
    """Return True if a shell reads this first word of a command as a part of its language."""
    return word.text in RESERVED and word.bare_text == word.text


def program_of(command: SimpleCommand) -> Word | None:
    """Return the word that names the command, after assignments such as LANG=C."""
    words = (item for item in command if isinstance(item, Word))
    return next((word for word in words if not ASSIGNMENT.match(word.bare_text)), None)


def number_places(script: Script) -> list[NumberPlace]:
    """Return the places of all hyperparameters that must be numbers."""
    reason = _reason_between(script.commands)
    if reason is not None:
        return [
            NumberPlace(name, reason) for command in script.commands for name in _slots(command)
        ]
    return [place for command in script.commands for place in _places(command)]


def _reason_between(commands: Sequence[SimpleCommand]) -> str | None:
    """Return why one command may run what another one writes; None if there is no sign of it."""
    if len(commands) == 1:
        return None
    reader = next(filter(None, map(_reads_commands, commands)), None)
    if reader is not None:
        return f"'{reader}' may read what other commands of the template write, and run it"
    run = {name.removeprefix("./") for command in commands for name in _run_by(command)}
    for item in (item for command in commands for item in command):
        if isinstance(item, Redirection) and item.target is not None:
            written = (item.target.text or "").removeprefix("./")
            if written in run:
                return f"the template writes the file '{written}', and runs it"
    return None


def _run_by(command: SimpleCommand) -> Iterator[str]:
    """Yield the programs and the scripts that a command runs."""
    watch = _Watch()
    for item in command:
        if isinstance(item, Word):
            if watch.awaits_program and item.text is not None:
                yield item.text
            watch.look_at(item)


def _slots(command: SimpleCommand) -> Iterator[str]:
    for item in command:
        word = item.target if isinstance(item, Redirection) else item
        yield from word.slots if word is not None else ()


def _reads_commands(command: SimpleCommand) -> str | None:
    """Return the name of a program that runs what it reads from a file or from another command."""
    program = program_of(command)
    if program is None:
        return None
    words = [item.text or "" for item in command if isinstance(item, Word)]
    names = [text.rpartition("/")[2] for text in words]
    for number, name in enumerate(names):
        if SHELL.fullmatch(name) and all(each.startswith("-") for each in words[number + 1 :]):
            return name
        if name in ("xargs", "parallel"):
            return name
    first = (program.text or "").rpartition("/")[2]
    reads_code = LANGUAGE.fullmatch(first) is not None and words[1:] in ([], ["-"])
    return first if reads_code or first in (".", "source", "eval", "at", "batch") else None


def _places(command: SimpleCommand) -> Iterator[NumberPlace]:
    for item in command:
        if isinstance(item, Redirection):
            for name in item.target.slots if item.target is not None else ():
                yield NumberPlace(name, "it is part of the name of a file that is redirected")
    words = [item for item in command if isinstance(item, Word)]
    program = program_of(command)
    start = len(words) if program is None else words.index(program)
    for word in words[:start]:
        yield from _all(word, "it is the value of a variable of the shell")
    if program is None:
        return
    yield from _all(program, "it is part of the name of a program")
    reason = _reason_for_all(program)
    watch = _Watch()
    for word in words[start:]:
        if reason is not None:
            yield from _all(word, reason)
        elif word is not program and (found := watch.reason(word)) is not None:
            yield from _all(word, found)
        watch.look_at(word)


def _reason_for_all(program: Word) -> str | None:
    """Return why none of the arguments of a command may be a text; None if they may."""
    name = program.text
    if name is None or program.needs_shell:
        return "the name of its program is not known beforehand"
    if is_builtin(name) and name not in TEXT_BUILTINS:
        return f"the shell's own command '{name}' may run its arguments"
    return None


def _all(word: Word, reason: str) -> Iterator[NumberPlace]:
    return (NumberPlace(name, reason) for name in word.slots)


class _Watch:
    """Goes through the words of one command, and knows whether the next one may be code."""

    def __init__(self) -> None:
        self._reader: str | None = None
        """A program that takes any argument as code."""
        self._runner: str | None = "the shell"
        """The program that still waits for the name of a program, or for code."""
        self._shell: str | None = None
        """A shell, which takes the word after `-c` as code, wherever that is."""
        self._is_launched = False
        """True if any word may name a program, because another program runs it."""
        self._after_code_option = False

    @property
    def awaits_program(self) -> bool:
        """True if the next word may name a program or a script."""
        return self._runner is not None

    def reason(self, word: Word) -> str | None:
        """Return why a word must not hold a text; None if it may."""
        taker = self._shell or "the program"
        if self._reader is not None:
            return f"'{self._reader}' may take it for code"
        if self._runner is not None and not self._is_assignment_for_env(word.bare_text):
            return f"'{self._runner}' may take it for code, or for the name of a program"
        if self._after_code_option and (self._shell is not None or _looks_like_code(word)):
            return f"{taker} may take it for code"
        if self._shell is not None and CODE_OF_SHELL.match(word.bare_text):
            return f"{taker} may take it for code"
        return None

    def _is_assignment_for_env(self, text: str) -> bool:
        return self._runner in ("env", "sudo") and ASSIGNMENT.match(text) is not None

    def look_at(self, word: Word) -> None:
        """Note a word."""
        text = word.text
        self._after_code_option = text is not None and CODE_OPTION.fullmatch(text) is not None
        if text is None:
            return
        name = text.rpartition("/")[2]
        if SHELL.fullmatch(name):
            self._runner = self._shell = name
        elif (self._runner is not None or self._is_launched) and self._runs(name):
            return
        elif not SETTING.fullmatch(text) and not self._is_assignment_for_env(text):
            self._runner = None

    def _runs(self, name: str) -> bool:
        """Note a program that runs others, or code; return True if it is one."""
        if CODE_READER.fullmatch(name):
            self._reader = name
        elif LANGUAGE.fullmatch(name) or LAUNCHER.fullmatch(name):
            self._runner = name
            self._is_launched = self._is_launched or LAUNCHER.fullmatch(name) is not None
        else:
            return False
        return True


def _looks_like_code(word: Word) -> bool:
    """Return True if the text around a value is more than a name or a number."""
    texts = (part.text for part in word.parts if isinstance(part, Literal))
    return not all(re.fullmatch(r"[\w.,:/@%+=-]*", text) for text in texts)
