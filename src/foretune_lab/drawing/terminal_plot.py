"""Curves as braille dots, for terminals without pictures."""

from collections.abc import Mapping

import numpy as np

from foretune.numerics import Bools, Floats

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bit of each dot in a braille character: 4 rows, 2 columns."""
_BLANK = 0x2800
_AXIS_WIDTH = 9


def terminal_plot(
    curves: Mapping[str, Floats], width: int = 72, height: int = 14, *, log: bool = False
) -> str:
    """Draw curves over 1, 2, 3, ... with axes. A letter of the key marks the end of each curve.

    With `log`, the vertical axis is logarithmic and values of 0 are not drawn.
    """
    scaled = {name: _scale(curve, log=log) for name, curve in curves.items()}
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in scaled.values()])
    if finite.size == 0:
        return "nothing to draw: no finite value"
    low, high = float(finite.min()), float(finite.max())
    columns = max(width - _AXIS_WIDTH - 3, 8)
    canvas = np.full((height, columns), " ")
    length = max(map(len, curves.values()))
    for curve in scaled.values():
        _draw(canvas, _raster(curve, length, (low, high), (height * 4, columns * 2)))
    key = _mark_ends(canvas, scaled, length, (low, high))
    labels = {0: high, height - 1: low, (height - 1) // 2: high - (high - low) * 0.5}
    lines = [
        f"{_label(labels[row], log=log) if row in labels else '':>{_AXIS_WIDTH}} │"
        + "".join(canvas[row])
        for row in range(height)
    ]
    ends = f"1{length:>{columns - 1}}"
    corner = " " * (_AXIS_WIDTH + 1) + "└" + "─" * columns
    return "\n".join([*lines, corner, " " * (_AXIS_WIDTH + 2) + ends, "", *key])


def _scale(curve: Floats, *, log: bool) -> Floats:
    if not log:
        return np.asarray(curve, dtype=np.float64)
    return np.log10(curve, out=np.full(len(curve), np.nan), where=np.asarray(curve) > 0)


def _raster(
    curve: Floats, length: int, limits: tuple[float, float], shape: tuple[int, int]
) -> Bools:
    """Return the dots of a curve of at most `length` values; steep pieces are filled."""
    dots = np.zeros(shape, dtype=bool)
    x = np.linspace(0, length - 1, shape[1])
    y = np.interp(x, np.arange(len(curve)), curve, right=np.nan)
    last: int | None = None
    for column, value in enumerate(y):
        if not np.isfinite(value):
            last = None
            continue
        row = _row(float(value), limits, shape[0])
        start = row if last is None else last
        dots[min(row, start) : max(row, start) + 1, column] = True
        last = row
    return dots


def _row(value: float, limits: tuple[float, float], rows: int) -> int:
    low, high = limits
    share = (value - low) / (high - low) if high > low else 0.5
    return round((1 - share) * (rows - 1))


def _draw(canvas: np.ndarray[tuple[int, int], np.dtype[np.str_]], dots: Bools) -> None:
    """Add the dots to the characters that are there."""
    rows, columns = canvas.shape
    cells = dots.reshape(rows, 4, columns, 2).transpose(0, 2, 1, 3)
    bits = (cells * _DOTS).sum(axis=(2, 3))
    for row, column in np.argwhere(bits):
        there = ord(canvas[row, column])
        old = there - _BLANK if there >= _BLANK else 0
        canvas[row, column] = chr(_BLANK + (old | int(bits[row, column])))


def _mark_ends(
    canvas: np.ndarray[tuple[int, int], np.dtype[np.str_]],
    curves: Mapping[str, Floats],
    length: int,
    limits: tuple[float, float],
) -> list[str]:
    """Put each curve's letter at its end, moved left if another letter is there."""
    key = []
    for place, (name, curve) in enumerate(curves.items()):
        letter = chr(ord("a") + place)
        key.append(f"{'':>{_AXIS_WIDTH + 2}}{letter}  {name}")
        drawn = np.flatnonzero(np.isfinite(curve))
        if len(drawn) == 0:
            continue
        end = int(drawn[-1])
        row = _row(float(curve[end]), limits, len(canvas))
        column = round(end / max(length - 1, 1) * (canvas.shape[1] - 1))
        while column > 0 and canvas[row, column].isalpha():
            column -= 1
        canvas[row, column] = letter
    return key


def _label(value: float, *, log: bool) -> str:
    return f"{10**value if log else value:.3g}"
