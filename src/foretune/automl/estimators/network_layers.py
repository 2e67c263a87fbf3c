"""The layers of the tabular network, with gradients by hand.

A number z becomes z itself and a linear map of cos(2 pi (f z + b)), with frequencies f of its own.
These, indicators of missing numbers and of categories, go through layers with the activation
a(x) = x (1 - s) + s silu(x), where each unit learns its own s. All parameters lie in one vector, so
that an optimiser updates them at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Singles: TypeAlias = NDArray[np.float32]
Parts: TypeAlias = Mapping[str, Singles]
"""Views of a vector of parameters, by name."""
WAVES, WAVE_OUTPUTS = 8, 3
FREQUENCY = 0.15
"""The standard deviation of the first frequencies; numbers have a scale of about 1."""


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The sizes of a network."""

    numbers: int
    """Columns of numbers, each with its waves."""
    indicators: int
    """Columns of 0 and 1, which stay as they are."""
    units: int
    layers: int
    outputs: int
    waves: int = WAVES

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each part of the parameters, in their order in the vector."""
        wide = self.numbers * (1 + (WAVE_OUTPUTS if self.waves else 0)) + self.indicators
        shapes: dict[str, tuple[int, ...]] = {"scale": (wide,)}
        if self.waves and self.numbers:
            shapes["frequency"] = (self.numbers, 1, self.waves)
            shapes["phase"] = (self.numbers, 1, self.waves)
            shapes["mix"] = (self.numbers, self.waves, WAVE_OUTPUTS)
        for layer in range(self.layers):
            shapes[f"weight{layer}"] = (wide, self.units)
            shapes[f"bias{layer}"] = (self.units,)
            shapes[f"share{layer}"] = (self.units,)
            wide = self.units
        shapes["weight"] = (wide, self.outputs)
        shapes["bias"] = (self.outputs,)
        return shapes

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(map(prod, self.shapes.values()))

    def split(self, vector: Singles) -> dict[str, Singles]:
        """Return the parts of a vector, as views."""
        parts, end = {}, 0
        for name, shape in self.shapes.items():
            begin, end = end, end + prod(shape)
            parts[name] = vector[begin:end].reshape(shape)
        return parts

    def draw(self, rng: np.random.Generator) -> Singles:
        """Draw the first parameters."""
        vector = np.zeros(self.size, dtype=np.float32)
        for name, part in self.split(vector).items():
            if name in ("scale",) or name.startswith("share"):
                part[...] = 1.0
            elif name.startswith("weight"):
                # The last layer begins at 0, so the first prediction is the mean or equal shares.
                size = 0.0 if name == "weight" else np.sqrt(2.0 / part.shape[0])
                part[...] = size * rng.normal(size=part.shape)
            elif name == "frequency":
                part[...] = FREQUENCY * rng.normal(size=part.shape)
            elif name == "phase":
                part[...] = rng.uniform(-0.5, 0.5, size=part.shape)
            elif name == "mix":
                part[...] = rng.normal(size=part.shape) / np.sqrt(part.shape[1])
            elif name != "bias":
                part[...] = 0.1 * rng.normal(size=part.shape)
        return vector


def predict_outputs(
    shape: NetworkShape, parts: Parts, numbers: Singles, indicators: Singles
) -> Singles:
    """Return the outputs (n, outputs)."""
    outputs: Singles = run_forward(shape, parts, numbers, indicators)["outputs"]
    return outputs


def run_forward(
    shape: NetworkShape,
    parts: Parts,
    numbers: Singles,
    indicators: Singles,
    masks: list[Singles] | None = None,
) -> dict[str, Any]:
    """Return the outputs, and what the gradients need.

    masks: factors (n, units) of each layer that drop units while learning.
    """
    kept: dict[str, Any] = {"numbers": numbers}
    columns = [numbers, indicators]
    if "mix" in parts:
        angle = (2.0 * np.pi) * (numbers.T[:, :, None] * parts["frequency"] + parts["phase"])
        kept["angle"] = angle
        kept["wave"] = np.cos(angle)
        mixed = kept["wave"] @ parts["mix"]
        columns.append(mixed.transpose(1, 0, 2).reshape(len(numbers), -1))
    kept["inputs"] = np.concatenate(columns, axis=1)
    hidden = kept["inputs"] * parts["scale"]
    for layer in range(shape.layers):
        kept[f"in{layer}"] = hidden
        linear = hidden @ parts[f"weight{layer}"]
        linear += parts[f"bias{layer}"]
        gate = 1.0 / (1.0 + np.exp(-np.maximum(linear, -80.0)))
        curved = linear * gate - linear
        kept[f"linear{layer}"], kept[f"gate{layer}"], kept[f"curved{layer}"] = linear, gate, curved
        hidden = linear + parts[f"share{layer}"] * curved
        if masks is not None:
            hidden = hidden * masks[layer]
    kept["last"] = hidden
    kept["outputs"] = hidden @ parts["weight"] + parts["bias"]
    return kept


def run_backward(
    shape: NetworkShape,
    parts: Parts,
    kept: Mapping[str, Any],
    slope: Singles,
    gradient: Mapping[str, Singles],
    masks: list[Singles] | None = None,
) -> None:
    """Write the gradient of the loss into the views of a vector.

    slope: (n, outputs), the gradient of the loss by the outputs.
    """
    gradient["weight"][...] = kept["last"].T @ slope
    gradient["bias"][...] = slope.sum(axis=0)
    slope = slope @ parts["weight"].T
    for layer in reversed(range(shape.layers)):
        if masks is not None:
            slope = slope * masks[layer]
        linear, gate = kept[f"linear{layer}"], kept[f"gate{layer}"]
        gradient[f"share{layer}"][...] = (slope * kept[f"curved{layer}"]).sum(axis=0)
        bend = gate * (1.0 + linear * (1.0 - gate)) - 1.0
        slope = slope * (1.0 + parts[f"share{layer}"] * bend)
        gradient[f"weight{layer}"][...] = kept[f"in{layer}"].T @ slope
        gradient[f"bias{layer}"][...] = slope.sum(axis=0)
        slope = slope @ parts[f"weight{layer}"].T
    gradient["scale"][...] = (slope * kept["inputs"]).sum(axis=0)
    if "mix" in parts:
        _waves_backward(shape, parts, kept, slope * parts["scale"], gradient)


def _waves_backward(
    shape: NetworkShape,
    parts: Parts,
    kept: Mapping[str, Any],
    slope: Singles,
    gradient: Mapping[str, Singles],
) -> None:
    """Write the gradient of the waves; slope: (n, inputs), the gradient by the inputs."""
    plain = shape.numbers + shape.indicators
    of_mixed = slope[:, plain:].reshape(len(slope), shape.numbers, WAVE_OUTPUTS)
    of_mixed = np.ascontiguousarray(of_mixed.transpose(1, 0, 2))
    gradient["mix"][...] = kept["wave"].transpose(0, 2, 1) @ of_mixed
    of_angle = (of_mixed @ parts["mix"].transpose(0, 2, 1)) * np.sin(kept["angle"])
    of_angle *= -2.0 * np.pi
    gradient["phase"][...] = of_angle.sum(axis=1, keepdims=True)
    of_frequency = of_angle * kept["numbers"].T[:, :, None]
    gradient["frequency"][...] = of_frequency.sum(axis=1, keepdims=True)
