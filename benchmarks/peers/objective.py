"""The objective that all tuners share: the loss of the nearest recorded configuration.

Peers search continuous spaces, but a table knows some configurations only. So a suggestion gets the
loss of the recorded configuration that is nearest to it, the same for everyone. A `Problem` is one
task as a plain file, space and past tasks included, so that a peer's environment needs NumPy alone.

A configuration is a row of numbers in the order of the parameters: a number as it is, a choice by
its index, NaN where the parameter is inactive.
"""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter. Hyperparameters with a single value are left out."""

    name: str
    kind: str
    """`float`, `int`, `ordinal` (an index with an order) or `categorical` (one without)."""
    low: float
    high: float
    log: bool
    parents: tuple[tuple[int, tuple[float, ...]], ...] = ()
    """(index of another parameter, its values that allow this one). All conditions must hold."""

    @property
    def choices(self) -> int:
        """The number of values, if the values are indices."""
        return int(self.high) + 1

    def to_unit(self, values: Floats) -> Floats:
        """Map values to [0, 1] on the parameter's own scale."""
        if self.log:
            scaled = np.log(values / self.low) / np.log(self.high / self.low)
        else:
            scaled = (values - self.low) / (self.high - self.low)
        unit: Floats = np.clip(scaled, 0.0, 1.0)
        return unit

    def from_unit(self, unit: float) -> float:
        """Return the value nearest to a point of [0, 1]."""
        if self.log:
            value = self.low * (self.high / self.low) ** unit
        else:
            value = self.low + unit * (self.high - self.low)
        value = value if self.kind == "float" else float(np.rint(value))
        return float(np.clip(value, self.low, self.high))


@dataclass(frozen=True)
class Past:
    """The recorded evaluations of another task."""

    values: Floats
    """(n, parameters)"""
    losses: Floats
    """(n,)"""

    def some(self, n: int, seed: int) -> "Past":
        """Draw at most n of the rows."""
        rows = np.random.default_rng(seed).permutation(len(self.losses))[:n]
        return Past(self.values[rows], self.losses[rows])


@dataclass(frozen=True)
class Problem:
    """One task to tune, and the records of other tasks."""

    task: str
    parameters: tuple[Parameter, ...]
    """Parents before children."""
    values: Floats
    """(n, parameters): the recorded configurations that did not fail."""
    losses: Floats
    """(n,), minimised."""
    past: dict[str, Past]
    experience: str
    """The file of the experience, for tuners that read it themselves."""
    learnt_from: tuple[str, ...]
    """The names of all tasks in the file that may teach. `past` may hold only a part of them."""

    def loss(self, row: Floats) -> float:
        """Return the loss of the recorded configuration nearest to one row."""
        return float(self.losses[self.nearest(row)])

    def nearest(self, row: Floats) -> int:
        """Return the first recorded configuration with the least squared distance in the unit cube.

        Choices that differ are 1 apart, and so is a value from an inactive parameter.
        """
        distance = np.zeros(len(self.losses))
        settled = self.settled(row)
        for place, parameter in enumerate(self.parameters):
            column = self._unit[:, place]
            if np.isnan(settled[place]):
                distance += ~np.isnan(column)
                continue
            own = parameter.to_unit(settled[place : place + 1])[0]
            apart = column != own if parameter.kind == "categorical" else (column - own) ** 2
            distance += np.where(np.isnan(column), 1.0, apart)
        return int(distance.argmin())

    def settled(self, row: Floats) -> Floats:
        """Return the row without the values of inactive parameters."""
        settled = np.array(row, dtype=np.float64)
        for place, parameter in enumerate(self.parameters):
            if any(settled[parent] not in allowed for parent, allowed in parameter.parents):
                settled[place] = np.nan
        return settled

    def filled(self, values: Floats) -> Floats:
        """Return rows (n, parameters), inactive parameters in the middle of their range."""
        middle = [parameter.from_unit(0.5) for parameter in self.parameters]
        return np.where(np.isnan(values), middle, values)

    @cached_property
    def _unit(self) -> Floats:
        columns = [p.to_unit(self.values[:, place]) for place, p in enumerate(self.parameters)]
        return np.stack(columns, axis=1)

    def save(self, path: Path) -> None:
        """Write one NPZ file."""
        described = {
            "task": self.task,
            "parameters": [asdict(parameter) for parameter in self.parameters],
            "past": list(self.past),
            "experience": self.experience,
            "learnt_from": self.learnt_from,
        }
        arrays = {"described": np.array(json.dumps(described))}
        arrays |= {"values": self.values, "losses": self.losses}
        for number, past in enumerate(self.past.values()):
            arrays |= {f"past_values_{number}": past.values, f"past_losses_{number}": past.losses}
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path) -> "Problem":
        """Read what `save` has written."""
        with np.load(path, allow_pickle=False) as arrays:
            described = json.loads(str(arrays["described"]))
            past = {
                name: Past(arrays[f"past_values_{number}"], arrays[f"past_losses_{number}"])
                for number, name in enumerate(described["past"])
            }
            return cls(
                task=described["task"],
                parameters=tuple(_parameter(plain) for plain in described["parameters"]),
                values=arrays["values"],
                losses=arrays["losses"],
                past=past,
                experience=described["experience"],
                learnt_from=tuple(described["learnt_from"]),
            )


def _parameter(plain: dict[str, object]) -> Parameter:
    parents = tuple((place, tuple(allowed)) for place, allowed in plain.pop("parents"))  # type: ignore[attr-defined]
    return Parameter(**plain, parents=parents)  # type: ignore[arg-type]
