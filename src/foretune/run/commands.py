"""Trials that are command lines: `python train.py --lr {lr}`, which print their result."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from foretune.errors import UsageError
from foretune.run.calling import LONGEST_REASON
from foretune.run.memory import resident_bytes, size_text

CONFIG_VARIABLE = "FORETUNE_CONFIG"
"""The environment variable that holds the whole configuration as JSON."""
LOOK_AT_MEMORY_SECONDS = 0.1
"""How often memory is measured."""
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
WORD = re.compile(
    r"""(?: \{\{ | \}\} | \{[^{}]*\}             # braces, and placeholders of whatever name
          | '[^']*' | "(?: \\[\s\S] | [^"\\] )*"  # quoted
          | \\. | [^\s\\'"`;&|<>()] )+            # escaped, and all that does not end a word
    """,
    re.VERBOSE,
)
"""What the shell takes for one word."""
NESTING = re.compile(r"""\\[\s\S]|\$\(\(|\$\(|[()'"`]""")
"""What opens or ends a quotation or a command within the command, and what is escaped."""
SPECIAL_IN_QUOTES = re.compile(r"""[\\"$`]""")
OPTION = re.compile(r"--?[^\s=\d.][^\s=]*")
BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
REDIRECTION = re.compile(r"(?:(?<!\S)\d+|&)?[<>]{1,2}[ \t]*\Z")


class CommandError(Exception):
    """A command that failed; the trial's reason."""


@dataclass(frozen=True, slots=True)
class Command:
    """A line for the shell with a placeholder `{name}` where a hyperparameter's value belongs.

    Values reach the program as they are: they are quoted for the shell, inside quotation marks as
    these demand; in a command within double quotes, `"$(...)"`, none may stand. `{{` and `}}` stand
    for braces. The argument that holds an inactive hyperparameter is left out, all of it, and with
    it the option just before it: without `depth`, `fit --depth {depth} -v` is `fit -v`, and so is
    `fit --shape "{depth} {width}" -v`. The result is the last line of the output that is a JSON
    number or object. An exit code other than 0 is a failure; its reason is the last error line.
    """

    template: str
    memory_bytes: int | None = None
    """How much the processes of the command may hold together."""

    def check(self, names: Collection[str]) -> None:
        """Refuse placeholders that are no hyperparameters, or that stand where none can."""
        for found in PLACEHOLDER.finditer(self.template):
            name = found[1]
            if name is not None and name not in names:
                raise UsageError(
                    f"a placeholder must be a hyperparameter of the space, but '{{{name}}}' is "
                    f"none of {', '.join(names)}: correct it, or write {{{{ for a brace"
                )
        _check_places(self.template)

    def line(self, config: Mapping[str, Any]) -> str:
        """The command line of a configuration."""
        return _filled(_without_inactive(self.template, config), config)

    def __call__(self, config: dict[str, Any]) -> Any:
        """Run the command and return the number or the mapping that it prints."""
        process = subprocess.Popen(
            self.line(config),
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, CONFIG_VARIABLE: json.dumps(config, default=str)},
        )
        printed, errors = self._wait(process)
        if process.returncode:
            raise CommandError(_failure(process.returncode, errors))
        return _result(printed)

    def _wait(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        """What the process has printed, unless it takes too much memory."""
        while True:
            limit = None if self.memory_bytes is None else LOOK_AT_MEMORY_SECONDS
            try:
                return process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                family = descendants(process.pid)
                held = sum(resident_bytes(pid) or 0 for pid in family)
                if self.memory_bytes is not None and held > self.memory_bytes:
                    for pid in family:
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    process.communicate()
                    limit_text = size_text(self.memory_bytes)
                    raise MemoryError(f"the command is over its limit of {limit_text}") from None


def _check_places(template: str) -> None:
    """Refuse a placeholder whose value cannot be quoted for the place that it stands in."""
    open_, end = "", 0
    for found in PLACEHOLDER.finditer(template):
        open_, end = _open_after(template[end : found.start()], open_), found.end()
        within_quotes = open_.partition('"')[2]
        if found[1] is not None and ("$" in within_quotes or "`" in within_quotes):
            raise UsageError(
                "a placeholder must not stand in $(...) or backticks within double quotes, but "
                f"'{found[0]}' does: leave out the quotes around the inner command, or let it read "
                f"the variable {CONFIG_VARIABLE}"
            )


def _open_after(text: str, open_: str) -> str:
    """What is open after a text, given what is open before it, the outermost first.

    Quotation marks, brackets, backticks, and `$` for a command in `$(...)`.
    """
    for mark in NESTING.findall(text):
        last = open_[-1:]
        if last == "'":
            open_ = open_[:-1] if mark in ("'", "\\'") else open_
        elif mark == "`" and mark in open_:
            open_ = open_.partition(mark)[0]
        elif mark == ")":
            open_ = open_[:-1] if last in ("(", "$") else open_
        elif mark == last == '"':
            open_ = open_[:-1]
        elif mark == "$((":  # a sum, and no command
            open_ += "(("
        elif mark == "$(" or mark in ('"', "`") or (mark in ("'", "(") and last != '"'):
            open_ += mark[0]
    return open_


def _without_inactive(template: str, config: Mapping[str, Any]) -> str:
    """Drop each word with an inactive hyperparameter, and the option that it is the value of."""
    kept, end = "", 0
    for before, word in pairwise([None, *WORD.finditer(template)]):
        assert word is not None
        if _is_active(word[0], config):
            continue
        kept += template[end : max(end, _beginning(template, before, word))]
        end = word.end() + template.startswith((" ", "\t"), word.end())
    return kept + template[end:]


def _is_active(word: str, config: Mapping[str, Any]) -> bool:
    names = (found[1] for found in PLACEHOLDER.finditer(word))
    return all(name is None or name in config for name in names)


def _beginning(template: str, before: re.Match[str] | None, word: re.Match[str]) -> int:
    """Where to cut for a word to go: at its option, at its redirection, or at the word itself."""
    if before is not None:
        between = template[before.end() : word.start()]
        if BLANKS.fullmatch(between) and OPTION.fullmatch(before[0]):
            return before.start()
    arrow = REDIRECTION.search(template, 0, word.start())
    return word.start() if arrow is None else arrow.start()


def _filled(template: str, config: Mapping[str, Any]) -> str:
    """The template with values in place of placeholders, quoted as the place demands."""
    line, end, open_ = "", 0, ""
    for found in PLACEHOLDER.finditer(template):
        between = template[end : found.start()]
        open_, end = _open_after(between, open_), found.end()
        name = found[1]
        line += between + (found[0][0] if name is None else _quoted(str(config[name]), open_[-1:]))
    return line + template[end:]


def _quoted(value: str, quote: str) -> str:
    """A value for the shell, inside these quotation marks or outside of any."""
    if quote == "'":
        return value.replace("'", "'\"'\"'")
    if quote == '"':
        return SPECIAL_IN_QUOTES.sub(r"\\\g<0>", value)
    return shlex.quote(value)


def _failure(code: int, errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    ended = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
    return f"{ended}: {lines[-1]}"[:LONGEST_REASON] if lines else ended


def _result(printed: str) -> Any:
    for line in reversed(printed.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict | int | float) and not isinstance(found, bool):
            return found
    raise CommandError("it printed no line that is a JSON number or object")


def descendants(pid: int) -> list[int]:
    """A process and all that it has started, directly or not, as far as they are still there."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def _parents() -> list[tuple[int, int]]:
    """Every process with its parent."""
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-axo", "pid=,ppid="]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return [(int(pid), int(parent)) for pid, parent in map(str.split, listed.splitlines())]
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                found.append((int(folder.name), int(fields.rpartition(")")[2].split()[1])))
    return found
