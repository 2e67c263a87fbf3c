"""Reads universal binary JSON as XGBoost writes it, and refuses anything else.

Every length is compared with the number of bytes left before memory is taken, so the result is
never much larger than the input.
"""

import struct
from typing import Any, NoReturn

import numpy as np

from foretune.automl.final_model.damaged_part import DamagedPartError

DEEPEST = 16
"""The most levels; XGBoost writes eight."""
_SCALARS = {"d": ">f", "D": ">d", "i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q"}
_DTYPES = {"d": ">f4", "D": ">f8", "i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8"}
_CONSTANTS = {"T": True, "F": False, "Z": None}


def decode(content: bytes) -> Any:
    """Return the value in some bytes; typed arrays become NumPy arrays.

    Raises DamagedPartError if XGBoost does not write such bytes.
    """
    reader = _UbjsonReader(content)
    value = reader.value(reader.mark(), 1)
    if reader.place != len(content):
        _refuse("goes on after its end")
    return value


class _UbjsonReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def mark(self) -> str:
        return self._take(1).decode("latin-1")

    def value(self, mark: str, depth: int) -> Any:
        if depth > DEEPEST:
            _refuse("is too deep")
        if mark == "{":
            return self._object(depth)
        if mark == "[":
            return self._array(depth)
        if mark == "S":
            return self._text()
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark not in _SCALARS:
            _refuse("has an unknown type")
        form = _SCALARS[mark]
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._peek() != "}":
            name = self._text()
            if name in found:
                _refuse("says something twice")
            found[name] = self.value(self.mark(), depth + 1)
        self.place += 1
        return found

    def _array(self, depth: int) -> Any:
        if self._peek() == "$":
            self.place += 1
            kind = self.mark()
            if kind not in _DTYPES or self.mark() != "#":
                _refuse("has an unknown array")
            dtype = np.dtype(_DTYPES[kind])
            count = self._length()
            return np.frombuffer(self._take(count * dtype.itemsize), dtype)
        found = []
        if self._peek() == "#":
            self.place += 1
            return [self.value(self.mark(), depth + 1) for _ in range(self._length())]
        while self._peek() != "]":
            found.append(self.value(self.mark(), depth + 1))
        self.place += 1
        return found

    def _text(self) -> str:
        return self._take(self._length()).decode()

    def _length(self) -> int:
        if self.mark() != "L":
            _refuse("has a length of another type")
        length = int(struct.unpack(">q", self._take(8))[0])
        if not 0 <= length <= len(self._content) - self.place:
            _refuse("lacks a length")
        return length

    def _peek(self) -> str:
        if self.place >= len(self._content):
            _refuse("ends too early")
        return chr(self._content[self.place])

    def _take(self, count: int) -> bytes:
        if count > len(self._content) - self.place:
            _refuse("ends too early")
        self.place += count
        return self._content[self.place - count : self.place]


def _refuse(what: str) -> NoReturn:
    raise DamagedPartError(f"the binary JSON of its booster {what}")
