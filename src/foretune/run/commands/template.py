"""Reading a command template: words, redirections, and the operators between commands.

Only a small part of the shell's language is read here: plain words, quotation marks, `$NAME`, file
name patterns, redirections to files, and the operators `|`, `&&`, `||`, `;` and the end of a line.
Everything else is refused with `UnreadableError`. What was read is written anew for the shell. So
a shell never sees the original, which it might understand differently.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

__all__ = ["Literal", "Redirection", "Script", "SimpleCommand", "Slot", "UnreadableError",
           "Variable", "Word", "read_script", "split_atoms"]  # fmt: skip

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-")
"""Characters that no shell treats specially."""
_PATTERN = frozenset("*?[]~")
"""Characters that the shell replaces by file names."""
LONGEST_NAME = 256
"""The largest length of the name of a variable."""
_BLANK = " \t"
_OPERATORS = ("&&", "||", "|", ";", "\n")
_UNREADABLE = {
    "`": "backticks",
    "(": "brackets",
    ")": "brackets",
    "{": "braces outside of quotation marks",
    "}": "braces outside of quotation marks",
    "!": "an exclamation mark outside of quotation marks",
    "&": "a command in the background",
}


class UnreadableError(Exception):
    """The template holds shell syntax that is not read here. The message names it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a hyperparameter's value."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """Plain text."""

    text: str
    is_quoted: bool = True
    """True if the shell must not look for special characters in it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the environment, such as $HOME."""

    name: str
    is_quoted: bool


Part: TypeAlias = Slot | Literal | Variable


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command, or one argument."""

    parts: tuple[Part, ...]

    @property
    def slots(self) -> tuple[str, ...]:
        """The hyperparameters whose values it holds."""
        return tuple(part.name for part in self.parts if isinstance(part, Slot))

    @property
    def text(self) -> str | None:
        """The text of the word, if it is the same for all values and environments."""
        texts = [part.text for part in self.parts if isinstance(part, Literal)]
        return "".join(texts) if len(texts) == len(self.parts) else None

    @property
    def bare_text(self) -> str:
        """The text at its beginning that is not in quotation marks."""
        texts = []
        for part in self.parts:
            if not isinstance(part, Literal) or part.is_quoted:
                break
            texts.append(part.text)
        return "".join(texts)

    @property
    def needs_shell(self) -> bool:
        """True if a shell must look at it, because of a variable or a file name pattern."""
        return any(
            isinstance(part, Variable)
            or (isinstance(part, Literal) and not part.is_quoted and _PATTERN & set(part.text))
            for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Redirection:
    """An arrow such as `2>` with the file after it; `2>&1` has none."""

    arrow: str
    target: Word | None


SimpleCommand: TypeAlias = tuple[Word | Redirection, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """Simple commands, and the operator after each but the last."""

    commands: tuple[SimpleCommand, ...]
    operators: tuple[str, ...]


def split_atoms(template: str) -> list[str | Slot]:
    """Return the characters of a template, with a slot for each `{name}`; `{{` is a brace."""
    atoms: list[str | Slot] = []
    end = 0
    for found in _BRACES.finditer(template):
        atoms += template[end : found.start()]
        atoms.append(found[0][0] if found[1] is None else Slot(found[1]))
        end = found.end()
    return atoms + list(template[end:])


@lru_cache(maxsize=16)
def read_script(template: str) -> Script:
    """Return the commands of a template; raise UnreadableError for other syntax."""
    return _TemplateReader(template).script()


class _TemplateReader:
    """Reads atoms one after the other."""

    def __init__(self, template: str) -> None:
        self._atoms = split_atoms(template)
        self._at = 0

    def script(self) -> Script:
        commands: list[SimpleCommand] = []
        operators: list[str] = []
        while True:
            self._skip(_BLANK)
            command = tuple(self._items())
            operator = self._operator()
            if command:
                commands.append(command)
                operators.append(operator)
            elif operator == "\n":
                continue  # An empty line, or the end of a line after `&&` or `|`.
            elif operator or not commands or operators[-1] not in (";", "\n"):
                raise UnreadableError("an operator without a command")
            if not operator:
                return Script(tuple(commands), tuple(operators[: len(commands) - 1]))

    def _peek(self, count: int = 1) -> str:
        """Return the next characters up to a slot; empty at the end."""
        taken = ""
        for atom in self._atoms[self._at : self._at + count]:
            if isinstance(atom, Slot):
                break
            taken += atom
        return taken

    def _skip(self, blanks: str) -> None:
        """Go to the next character that is not blank; a backslash joins two lines."""
        while True:
            if self._peek(2) == "\\\n":
                self._at += 2
            elif self._peek() and self._peek() in blanks:
                self._at += 1
            else:
                return

    def _operator(self) -> str:
        for operator in _OPERATORS:
            if self._peek(len(operator)) == operator:
                self._at += len(operator)
                if operator == ";" and self._peek() == ";":
                    raise UnreadableError("';;'")
                return operator
        if self._at < len(self._atoms):
            raise UnreadableError(_UNREADABLE.get(self._peek(), repr(self._peek())))
        return ""

    def _items(self) -> Iterator[Word | Redirection]:
        """Yield words and redirections up to an operator."""
        while True:
            self._skip(_BLANK)
            arrow = self._arrow()
            if arrow is not None:
                self._skip(_BLANK)
                yield Redirection(arrow, None if "&" in arrow else self._target())
                continue
            word = self._word()
            if word is None:
                return
            yield word

    def _arrow(self) -> str | None:
        """Return `>`, `>>`, `<`, `2>` or `2>&1`; None if there is no arrow."""
        ahead = self._peek(16)
        found = re.match(r"([0-9]*)([<>]+[&|(]?)([0-9]*)", ahead)
        if found is None:
            return None
        digits, arrow, after = found.groups()
        if arrow in (">", ">>", "<"):
            self._at += len(digits) + len(arrow)
            return digits + arrow
        if arrow == ">&" and after and self._ends_word(found.end()):
            self._at += found.end()
            return found[0]
        raise UnreadableError("a here-document" if "<<" in arrow else f"the redirection '{arrow}'")

    def _ends_word(self, offset: int) -> bool:
        """Return True if a word ends so many atoms ahead."""
        ahead = self._atoms[self._at + offset : self._at + offset + 1]
        return not ahead or (isinstance(ahead[0], str) and ahead[0] in " \t\n|;&")

    def _target(self) -> Word:
        word = self._word()
        if word is None:
            raise UnreadableError("a redirection without a file")
        return word

    def _word(self) -> Word | None:
        """Return the next word; None before an operator and at the end."""
        if self._peek() == "#":
            raise UnreadableError("a comment")
        parts: list[Part] = []
        while self._at < len(self._atoms):
            atom = self._atoms[self._at]
            if isinstance(atom, Slot):
                self._at += 1
                parts.append(atom)
            elif self._peek(2) == "\\\n":
                self._at += 2
            elif atom in " \t\n|;&<>":
                break
            else:
                self._at += 1
                parts += self._part(atom)
        return Word(_join(parts)) if parts else None

    def _part(self, character: str) -> Iterator[Part]:
        """Return the part that begins with a character outside of quotation marks."""
        if character == "'":
            yield from self._single()
        elif character == '"':
            yield from self._double()
        elif character == "\\":
            yield Literal(self._read_escaped())
        elif character == "$":
            yield Variable(self._variable(), is_quoted=False)
        elif character in _UNREADABLE:
            raise UnreadableError(_UNREADABLE[character])
        elif ord(character) < 32 or ord(character) == 127:
            raise UnreadableError(f"the control character {character!r}")
        else:
            yield Literal(character, character not in _PLAIN | _PATTERN)

    def _read_escaped(self) -> str:
        if not self._peek():
            raise UnreadableError("a backslash before a placeholder or the end")
        self._at += 1
        character = self._atoms[self._at - 1]
        assert isinstance(character, str)
        return character

    def _read_quoted(self, mark: str) -> Iterator[str | Slot]:
        """Yield the text up to a quotation mark, and skip the mark."""
        while self._at < len(self._atoms):
            atom = self._atoms[self._at]
            self._at += 1
            if atom == mark:
                return
            yield atom
        raise UnreadableError(f"a quotation mark {mark} without its partner")

    def _single(self) -> Iterator[Part]:
        yield Literal("")
        for atom in self._read_quoted("'"):
            yield Literal(atom) if isinstance(atom, str) else atom

    def _double(self) -> Iterator[Part]:
        yield Literal("")
        for atom in self._read_quoted('"'):
            if isinstance(atom, Slot):
                yield atom
            elif atom == "`":
                raise UnreadableError(_UNREADABLE[atom])
            elif atom == "$":
                yield Variable(self._variable(), is_quoted=True)
            elif atom == "\\":
                yield from self._read_escaped_in_double()
            else:
                yield Literal(atom)

    def _read_escaped_in_double(self) -> Iterator[Part]:
        character = self._peek()
        if not character:
            raise UnreadableError("a backslash before a placeholder or the end")
        if character == "\n":
            self._at += 1
        elif character in '$`"\\':
            self._at += 1
            yield Literal(character)
        else:
            yield Literal("\\")

    def _variable(self) -> str:
        """Return the name after a `$`, which may be in braces."""
        if self._peek() == "(":
            raise UnreadableError("a command or a sum in $(...)")
        braces = self._peek() == "{"
        self._at += braces
        found = _VARIABLE.match(self._peek(LONGEST_NAME))
        if found is None or found.end() == LONGEST_NAME:
            raise UnreadableError("'$' before something other than a name")
        self._at += found.end()
        if braces:
            if self._peek() != "}":
                raise UnreadableError("'${' with something other than a name")
            self._at += 1
        return found[0]


def _join(parts: list[Part]) -> tuple[Part, ...]:
    """Return the parts, with neighbouring literals of the same kind joined."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        alike = isinstance(part, Literal) and isinstance(last, Literal)
        if alike and part.is_quoted == last.is_quoted:  # type: ignore[union-attr]
            joined[-1] = Literal(last.text + part.text, part.is_quoted)  # type: ignore[union-attr]
        else:
            joined.append(part)
    return tuple(joined)
