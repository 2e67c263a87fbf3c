"""The few parts of flat buffers that are needed to look into the models of CatBoost.

A buffer holds tables and vectors, which refer to each other by distances in bytes. Whatever would
lie outside of the buffer is refused (ValueError).
"""

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foretune.automl.final_model.damaged_part import DamagedPartError


class FlatTable(NamedTuple):
    """A table: where each of its fields stands, by the number of the field."""

    content: bytes
    fields: dict[int, int]

    def scalar(self, field: int, form: str, default: float) -> float:
        """A number of the form `struct` knows; one that is not there has its default."""
        place = self.fields.get(field)
        return default if place is None else float(unpack(self.content, form, place))

    def table(self, field: int) -> "FlatTable":
        """A table that this one refers to."""
        return read_table(self.content, self._target(field))

    def tables(self, field: int) -> list["FlatTable"]:
        """A vector of tables; one that is not there is empty."""
        if field not in self.fields:
            return []
        places = self.array(field, "<u4")
        first = self._target(field) + 4
        starts = [first + 4 * number + int(each) for number, each in enumerate(places)]
        return [read_table(self.content, start) for start in starts]

    def array(self, field: int, dtype: Any) -> NDArray[Any]:
        """A vector of numbers; one that is not there is empty."""
        if field not in self.fields:
            return np.zeros(0, dtype)
        start = self._target(field)
        count, kind = int(unpack(self.content, "<I", start)), np.dtype(dtype)
        if count * kind.itemsize > len(self.content) - start - 4:
            raise DamagedPartError("the flat buffer of its booster has a list that is cut short")
        return np.frombuffer(self.content, kind, count, start + 4)

    def text(self, field: int) -> str:
        """A text; one that is not there is empty."""
        return self.array(field, "u1").tobytes().decode()

    def _target(self, field: int) -> int:
        if field not in self.fields:
            raise DamagedPartError("the flat buffer of its booster is not whole")
        place = self.fields[field]
        return place + int(unpack(self.content, "<I", place))


def root(content: bytes) -> FlatTable:
    """The table that a buffer begins with."""
    return read_table(content, int(unpack(content, "<I", 0)))


def read_table(content: bytes, start: int) -> FlatTable:
    """The table at a place of a buffer."""
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
    """A number at a place, which must lie in the content."""
    if not 0 <= place <= len(content) - struct.calcsize(form):
        raise DamagedPartError("the flat buffer of its booster leads out of itself")
    return struct.unpack_from(form, content, place)[0]
