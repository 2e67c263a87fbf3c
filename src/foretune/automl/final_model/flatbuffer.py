"""Reads the parts of flat buffers that CatBoost's models use.

A buffer holds tables and vectors, which refer to each other by distances in bytes. A reference
that leads out of the buffer raises DamagedPartError.
"""

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foretune.automl.final_model.damaged_part import DamagedPartError


class FlatTable(NamedTuple):
    """A table: the position of each of its fields, by the number of the field."""

    content: bytes
    fields: dict[int, int]

    def scalar(self, field: int, form: str, default: float) -> float:
        """Return a number in a format of `struct`, or the default if the field is absent."""
        place = self.fields.get(field)
        return default if place is None else float(unpack(self.content, form, place))

    def table(self, field: int) -> "FlatTable":
        """Return a table that this one refers to."""
        return read_table(self.content, self._target(field))

    def tables(self, field: int) -> list["FlatTable"]:
        """Return a vector of tables; empty if the field is absent."""
        if field not in self.fields:
            return []
        places = self.array(field, "<u4")
        first = self._target(field) + 4
        starts = [first + 4 * number + int(each) for number, each in enumerate(places)]
        return [read_table(self.content, start) for start in starts]

    def array(self, field: int, dtype: Any) -> NDArray[Any]:
        """Return a vector of numbers; empty if the field is absent."""
        if field not in self.fields:
            return np.zeros(0, dtype)
        start = self._target(field)
        count, kind = int(unpack(self.content, "<I", start)), np.dtype(dtype)
        if count * kind.itemsize > len(self.content) - start - 4:
            raise DamagedPartError("the flat buffer of its booster has a list that is cut short")
        return np.frombuffer(self.content, kind, count, start + 4)

    def text(self, field: int) -> str:
        """Return a text; empty if the field is absent."""
        return self.array(field, "u1").tobytes().decode()

    def _target(self, field: int) -> int:
        if field not in self.fields:
            raise DamagedPartError("the flat buffer of its booster is not whole")
        place = self.fields[field]
        return place + int(unpack(self.content, "<I", place))


def root(content: bytes) -> FlatTable:
    """Return the table that a buffer begins with."""
    return read_table(content, int(unpack(content, "<I", 0)))


def read_table(content: bytes, start: int) -> FlatTable:
    """Read the table at a position of a buffer."""
    form = start - int(unpack(content, "<i", start))
    size, length = int(unpack(content, "<H", form)), int(unpack(content, "<H", form + 2))
    if size < 4 or size % 2:
        raise DamagedPartError("the flat buffer of its booster has a table of another form")
    fields = {}
    for number in range((size - 4) // 2):
        offset = int(unpack(content, "<H", form + 4 + 2 * number))
        if offset >= length:
            raise DamagedPartError("the flat buffer of its booster has a field outside a table")
        if offset:
            fields[number] = start + offset
    return FlatTable(content, fields)


def unpack(content: bytes, form: str, place: int) -> Any:
    """Return the number at a position, which must lie in the content."""
    if not 0 <= place <= len(content) - struct.calcsize(form):
        raise DamagedPartError("the flat buffer of its booster points outside of itself")
    return struct.unpack_from(form, content, place)[0]
