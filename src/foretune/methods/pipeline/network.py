"""The pipeline embedding network (section 4.1, Appendix D) as masked dense layers.

A batch of pipelines with different algorithms takes one pass. The inputs of algorithms that were
not chosen are 0, so the encoders of a stage are stacked into one matrix, and the product is the
output of the chosen one: selection and concatenation (Figure 9) cost nothing. Between two encoder
layers the output is put back into the rows of the chosen encoder. The same code runs in NumPy and
in JAX.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.pipeline.layout import Key, NetworkLayout, Singles
from foretune.numerics.networks import Layers
from foretune.space import Encoded

Array: TypeAlias = Any
"""A NumPy array, or one of JAX's while training."""

CHUNK = 4096
"""The number of rows that are embedded at once, to keep activations small."""


@dataclass(frozen=True)
class PipelineEmbedding:
    """phi of Equation 5 for one layout. Callers pass the weights, so that they can be trained.

    An encoder layer has weights (rows of all encoders, selected neurons) and biases (encoders,
    selected neurons); other layers have weights (inputs, outputs) and biases (outputs,).
    """

    layout: NetworkLayout

    def __call__(self, layers: Sequence[tuple[Array, Array]], read: Array) -> tuple[Array, Array]:
        """Return phi (n, latent) and the mean (n,) of pipelines read by `NetworkLayout.read`."""
        weights, biases = layers[-1]
        outputs = self.hidden(layers, read) @ weights + biases
        latent = self.layout.sizes.latent
        return outputs[:, :latent], outputs[:, latent:].sum(axis=1)

    def hidden(self, layers: Sequence[tuple[Array, Array]], read: Array) -> Array:
        """Return (n, hidden), the inputs of the last layer."""
        layout, encoding = self.layout, self.layout.sizes.encoder_layers
        hidden, choices = self.encode(layers, read), read[:, len(layout.inputs) :]
        # The choices are the last inputs of the first aggregation layer.
        weights, biases = layers[encoding]
        split = hidden.shape[1]
        hidden = _rectify(hidden @ weights[:split] + choices @ weights[split:] + biases)
        for weights, biases in layers[encoding + 1 : -1]:
            hidden = _rectify(hidden @ weights + biases)
        return hidden

    def encode(self, layers: Sequence[tuple[Array, Array]], read: Array) -> Array:
        """Return the codes (n, selected), or the inputs (n, inputs) if there are no encoders."""
        layout = self.layout
        hidden, choices = read[:, : len(layout.inputs)], read[:, len(layout.inputs) :]
        opened = choices @ layout.opens
        for number, (weights, biases) in enumerate(layers[: layout.sizes.encoder_layers]):
            if number:
                hidden = hidden[:, layout.neuron_places] * opened[:, layout.neuron_encoders]
            of_weights, of_biases = self.masks(number)
            hidden = _rectify(hidden @ (weights * of_weights) + opened @ (biases * of_biases))
        return hidden

    def rows(self, number: int) -> Sequence[Key]:
        """Return the keys of the inputs of layer `number`, up to the first aggregation layer."""
        layout, encoding = self.layout, self.layout.sizes.encoder_layers
        if number < encoding:
            return layout.neuron_keys if number else layout.input_keys
        if number > encoding:
            return [(str(place),) for place in range(layout.hidden)]
        return [
            *(layout.selected_neuron_keys if encoding else layout.input_keys),
            *layout.choice_keys,
        ]

    def masks(self, number: int) -> tuple[Singles, Singles]:
        """Return masks of the weights and of the biases that encoder layer `number` has."""
        return (
            self.layout.within_stage(self.rows(number)),
            self.layout.within_stage(self.layout.encoder_keys),
        )

    def initial(self, rng: np.random.Generator) -> Layers:
        """Return He-normal weights, scaled by the real inputs of each neuron, and biases of 0."""
        layout = self.layout
        encoding = layout.sizes.encoder_layers
        layers = []
        for number in range(layout.sizes.layers + 1):
            rows = self.rows(number)
            if number < encoding:
                of_weights, of_biases = self.masks(number)
                owners = [key[:2] for key in rows]
                fan_in = np.array([owners.count(owner) for owner in owners])[:, None]
                weights = rng.standard_normal(of_weights.shape) * of_weights
                biases = np.zeros(of_biases.shape)
            else:
                last = number == layout.sizes.layers
                width = layout.sizes.outputs if last else layout.hidden
                fan_in = np.array([[len(rows)]])
                weights = rng.standard_normal((len(rows), width))
                biases = np.zeros((width,))
            scaled = weights * np.sqrt(2.0 / fan_in)
            layers.append((scaled.astype(np.float32), biases.astype(np.float32)))
        # The mean of every pipeline is 0 before training.
        layers[-1][0][:, layout.sizes.latent :] = 0.0
        return tuple(layers)

    def embed(self, layers: Layers, configs: Encoded) -> tuple[Floats, Floats]:
        """Return phi (n, latent) and the mean (n,) of configurations, in NumPy."""
        read = self.layout.read(configs)
        parts = [self(layers, read[at : at + CHUNK]) for at in range(0, max(len(read), 1), CHUNK)]
        phi, mean = (np.concatenate(part).astype(np.float64) for part in zip(*parts, strict=True))
        return phi, mean


def _rectify(x: Array) -> Array:
    return x * (x > 0)
