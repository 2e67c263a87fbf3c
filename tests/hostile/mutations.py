"""Ways to spoil a file, each a function of a random generator and of what was whole."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

DEEP = "@deep@"
"""Stands for a list of lists, so deep that it can only be written as text."""
DEPTH = 100_000
LONG_NUMBER = "@number@"
"""Stands for a number of more digits than Python reads."""
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, -(2**64), 10**30, 10**400, 0.5, -0.0, 1e308,
    5e-324, math.nan, math.inf, -math.inf, "", "0", "nan", "None", "é\u0301", "\x00", "\ud800",
    "../../etc/passwd", "x" * 5000, [], {}, [None], [[]], [0, "a"], {"": None}, {"a": {"b": []}},
    list(range(500)), DEEP, LONG_NUMBER,
)  # fmt: skip
CELLS = (
    "", "nan", "inf", "-inf", "1e400", "-1e308", "9" * 400, "0x1F", "1_000", "1,5", "true", "None",
    '"', '""', "'", "\x00", "\r", "a\nb", "é", "\ud800", "2020-01-01", "9999-12-31", "0000-00-00",
    "2262-04-12T00:00:00", "12:61", "=1+1", "x" * 200_000, "[" * 3000, "?", "\u202e", "١٢",
)  # fmt: skip
BLOCKS = (
    b"\x00" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x80\x04\x95", b"PK",
    b"PAR1", b"\xef\xbb\xbf", b"\xff\xfe", b"NaN", b"Infinity", b"1e999", b"-", b'"', b"{",
    b"[" * 2000, b"\n", b",", b"null", b"\x1f\x8b\x08",
)  # fmt: skip


def spoilt_bytes(rng: Random, content: bytes) -> bytes:
    """One to three changes that know nothing of what the bytes mean."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(_BYTE_CHANGES)(rng, content)
    return content


def spoilt_binary(rng: Random, content: bytes) -> bytes:
    """A change that knows nothing, or a number that is another, in either order of its bytes."""
    if rng.random() < 0.2:
        return spoilt_bytes(rng, content)
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if rng.random() < 0.3 and (digits := list(re.finditer(rb"\d+", content))):
            found = rng.choice(digits)
            changed[found.start() : found.end()] = bytes(
                rng.choice(b"0123456789") for _ in found[0]
            )
            continue
        size = rng.choice((1, 2, 4, 4, 4, 8))
        place = rng.randrange(max(1, len(content) - size))
        place -= place % rng.choice((1, size))
        number = rng.choice((0, 1, -1, 2, 5, 100, 2**15 - 1, 2**31 - 1, -(2**31), 2**40, 2**63 - 1))
        order = rng.choice(("little", "big"))
        changed[place : place + size] = (number % 2 ** (8 * size)).to_bytes(size, order)
    return bytes(changed)


def spoilt_json(rng: Random, document: Any) -> bytes:
    """The text of a document of which some parts are other than they should be."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 2, 3))):
        document = spoilt_value(rng, document)
    text = json_text(rng, document)
    return spoilt_bytes(rng, text) if rng.random() < 0.2 else text


def json_text(rng: Random, document: Any) -> bytes:
    """A document as text; now and then not in UTF-8, or with keys that come twice."""
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    text = text.replace(f'"{DEEP}"', "[" * DEPTH + "]" * DEPTH).replace(
        f'"{LONG_NUMBER}"', "9" * 5000
    )
    if rng.random() < 0.1 and text.startswith('{"'):
        text = "{" + text[1 : text.find(",")] + "," + text[1:]
    encoding = rng.choices(("utf-8", "utf-16", "utf-8-sig", "latin-1"), (90, 3, 4, 3))[0]
    return text.encode(encoding, errors="surrogatepass" if encoding == "utf-8" else "replace")


def spoilt_value(rng: Random, document: Any) -> Any:
    """The document with one part of it replaced, removed, doubled, renamed, wrapped or moved."""
    places = list(_places(document))
    if not places:
        return rng.choice(STRANGE)
    holder, key = rng.choice(places)
    change = rng.randrange(6)
    if change == 0:
        del holder[key]
    elif change == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif change == 1:
        holder[rng.choice(("", "extra", "\x00", key + "s"))] = holder.pop(key)
    elif change == 2:
        holder[key] = rng.choice(([holder[key]], {"value": holder[key]}, str(holder[key])))
    elif change == 3:
        other, where = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[where])) if where in _keys(other) else None
    else:
        holder[key] = rng.choice(STRANGE)
    return document


def spoilt_csv(rng: Random, text: str) -> bytes:
    """A table whose cells, names, rows or characters are other than they should be."""
    usual = csv.field_size_limit(2**24)
    rows = [list(row) for row in csv.reader(io.StringIO(text))]
    csv.field_size_limit(usual)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _change_rows(rng, rows)
    stream = io.StringIO()
    csv.writer(stream, delimiter=rng.choices(",;\t|", (85, 5, 5, 5))[0], quoting=rng.choice(
        (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))).writerows(rows)  # fmt: skip
    encoding = rng.choices(("utf-8", "utf-16", "latin-1", "utf-8-sig", "utf-32"), (80, 5, 5, 5, 5))[
        0
    ]
    errors = "surrogatepass" if encoding != "latin-1" else "replace"
    content = stream.getvalue().encode(encoding, errors=errors)
    return spoilt_bytes(rng, content) if rng.random() < 0.3 else content


def _change_rows(rng: Random, rows: list[list[str]]) -> None:
    row = rng.randrange(len(rows)) if rows else 0
    change = rng.randrange(6)
    if not rows or not rows[row]:
        rows.append([rng.choice(CELLS)])
    elif change == 0:
        rows[row] = rows[row] * rng.choice((0, 2, 50))
    elif change == 1:
        del rows[row : row + rng.choice((1, len(rows)))]
    elif change == 2:  # a whole column
        column = rng.randrange(len(rows[row]))
        cell = rng.choice(CELLS)
        for each in rows[1:]:
            if column < len(each):
                each[column] = cell
    elif change == 3:  # a name
        rows[0][rng.randrange(len(rows[0]))] = rng.choice((*CELLS, *rows[0])) if rows[0] else ""
    else:
        rows[row][rng.randrange(len(rows[row]))] = rng.choice(CELLS)


def _places(value: Any) -> Any:
    """Every (holder, key) in a document."""
    for key in _keys(value):
        yield value, key
        yield from _places(value[key])


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _flip(rng: Random, content: bytes) -> bytes:
    spoilt = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 4, 32))):
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def _cut(rng: Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _insert(rng: Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice((*BLOCKS, rng.randbytes(rng.randrange(1, 64)))) + content[at:]


def _overwrite(rng: Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    block = rng.choice(BLOCKS)
    return content[:at] + block + content[at + len(block) :]


def _remove(rng: Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[at + rng.choice((1, 2, 8, 100)) :]


def _splice(rng: Random, content: bytes) -> bytes:
    """A piece of the file in another place of it."""
    start, at = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
    piece = content[start : start + rng.randrange(1, 200)]
    return content[:at] + piece + content[at + rng.choice((0, len(piece))) :]


def _repeat(rng: Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    length = rng.randrange(1, 100)
    return (
        content[:at] + content[at : at + length] * rng.choice((2, 3, 200)) + content[at + length :]
    )


_BYTE_CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    _flip, _flip, _cut, _insert, _overwrite, _remove, _splice, _repeat,
)  # fmt: skip
