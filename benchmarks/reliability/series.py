"""A series of kills, and what it finds: the same for all campaigns of `kill -9`."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from tally import Tally


@dataclass
class Findings:
    """What a series has found. Each campaign adds its own counts."""

    tally: Tally

    def add(self, other: "Findings") -> None:
        """Add what another series has found."""
        self.tally.add(other.tally)
        for name in (each.name for each in fields(self) if each.name != "tally"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


Found = TypeVar("Found", bound=Findings)


def run_kills(series: Any, found: Found, run_study: Callable[[Any, Found], None]) -> Found:
    """Kill and resume until all kills are made, in several studies if one is finished before."""
    for number in range(series.kills):
        left = series.kills - found.tally.count
        if left == 0 or found.tally.said:
            break
        run_study(replace(series, kills=left, seed=1000 * series.seed + number), found)
    return found
