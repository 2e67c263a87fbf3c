"""Numbers and durations in the form that people read in a report."""

import math


def number_text(value: float) -> str:
    """Return four significant digits, or all digits of a whole number."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if abs(value) >= 1e9 or 0 < abs(value) < 1e-4:
        return f"{value:.3e}"
    if float(value).is_integer() or abs(value) >= 1e4:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def duration_text(seconds: float) -> str:
    """Return a duration in its two leading units."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def count_text(n: int, thing: str) -> str:
    """Return a number with its noun: 1 trial, 2 trials."""
    return f"{n:,} {thing if n == 1 else thing + 's'}"


def list_text(words: list[str]) -> str:
    """Join words with commas and a last "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shorten(text: str, longest: int) -> str:
    """Return the text, cut off if it is longer than `longest`."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
