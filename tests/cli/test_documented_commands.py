"""What README, the documents and `--help` tell people to type is understood."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from foretune.cli import foretune

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_in(text: str) -> Iterator[str]:
    """The `foretune` commands of a shell script, each in one line."""
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        for part in re.split(r"&&|\||;", line):
            words = part.strip()
            if words.startswith("foretune "):
                yield words


def documented() -> list[str]:
    blocks = [block for page in PAGES for block in _BLOCK.findall(page.read_text("utf-8"))]
    return sorted({command for block in blocks for command in commands_in(block)})


def exemplified() -> list[str]:
    helps = [command.help or "" for command in all_commands(foretune)]
    examples = [text.partition("Examples:")[2] for text in helps]
    # A remark stands two spaces after a command.
    typed = {command.partition("  ")[0] for text in examples for command in commands_in(text)}
    return sorted(typed)


def commands_below(command: click.Command) -> dict[str, click.Command]:
    """The commands of a group, those of other packages included."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: each for name, each in found.items() if each is not None}


def all_commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    for other in commands_below(command).values():
        yield from all_commands(other)


def understand(words: list[str]) -> None:
    """Raises click's error where a command, an option or a value is none."""
    command: click.Command = foretune
    context = click.Context(command, **command.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        first, *words = words
        below = commands_below(command)
        if first not in below and (usual := getattr(command, "usual", None)):
            first, words = usual, [first, *words]
        assert first in below, f"no command '{first}'"
        command = below[first]
        context = click.Context(command, parent=context, **command.context_settings)
    # A context without its parents would make the command forget that -h is --help.
    command.make_context(command.name, words, parent=context.parent)


@pytest.mark.parametrize("typed", [*documented(), *exemplified()])
def test_it_is_understood(typed: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(typed, comments=True)[1:]
    for file in (word for word in words if word.endswith(".parquet")):
        # Some options want files that exist.
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    with suppress(click.exceptions.Exit):  # --help and --version say their piece and end.
        understand(words)


def test_there_is_much_to_type() -> None:
    assert len(documented()) > 40
    assert len(exemplified()) > 20


def test_unknown_commands_and_options_are_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        understand(["fit", "a.csv", "--tarket", "y"])
    with pytest.raises(AssertionError, match="no command 'fiit'"):
        understand(["fiit", "a.csv"])
