"""A network that was learnt on one space and is used on another. Only new parts are trained.

Weights are matched by the keys of the parts that they connect (`layout.py`). The first output of an
encoder is its code.

- A new algorithm begins with the mean code of the known algorithms of its stage.
- An algorithm that got its first hyperparameter, or lost its last one, has another encoder now. It
  begins with the mean of its own earlier codes.
- The encoders of a new stage begin at random.
- All other new weights (of a new hyperparameter, or from a new stage into the aggregation) begin at
  0, so that they change nothing before the target's trials do.
- Parts that the target's space lacks are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from foretune.errors import MethodError
from foretune.methods.pipeline.layout import Key, NetworkLayout, Singles
from foretune.methods.pipeline.model import Choices, DeepPipe
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.numerics.networks import Layers
from foretune.space import Space

LOOKED_AT = 1000
"""The number of configurations that the encoders' outputs are averaged over."""


@dataclass(frozen=True, slots=True)
class ExtendedNetwork:
    """A learnt network on another space."""

    model: DeepPipe
    new: tuple[tuple[Singles, Singles], ...]
    """1 for each weight and bias that past tasks did not teach."""
    notes: tuple[str, ...]
    """The new parts of the space, in words."""


def extend_network(
    learnt: DeepPipe, space: Space, *, looked_at: int = LOOKED_AT
) -> ExtendedNetwork:
    """Return the learnt network on a space that shares at least one algorithm with its own.

    looked_at: the number of random configurations that show what a typical code is.
    """
    layout = NetworkLayout.of(space, learnt.layout.sizes, like=learnt.layout)
    _check_related(learnt.layout, layout)
    old, new = PipelineEmbedding(learnt.layout), PipelineEmbedding(layout)
    layers, news = [], []
    for number, (fresh, before) in enumerate(
        zip(_beginning(learnt, new, looked_at), learnt.layers, strict=True)
    ):
        into = _KeyMap(
            old.rows(number), new.rows(number), _columns(old, number), _columns(new, number)
        )
        weights, is_new = into.carry_over(before[0], fresh[0])
        if number < layout.sizes.encoder_layers:
            keys = replace(into, old_rows=learnt.layout.encoder_keys, new_rows=layout.encoder_keys)
            biases, new_biases = keys.carry_over(before[1], fresh[1])
        else:
            biases, new_biases = before[1], np.zeros_like(before[1])
        layers.append((weights, biases))
        news.append((is_new, new_biases))
    notes = tuple(additions(learnt.layout, layout))
    algorithms = _new_algorithms(learnt.layout, layout)
    model = replace(learnt, layout=layout, layers=tuple(layers), new=algorithms)
    return ExtendedNetwork(model, tuple(news), notes)


def _beginning(learnt: DeepPipe, new: PipelineEmbedding, looked_at: int) -> Layers:
    """Return first weights of the new network. Those that past tasks taught are replaced later."""
    layout, encoding = new.layout, new.layout.sizes.encoder_layers
    layers = []
    for number, (random, none) in enumerate(new.initial(np.random.default_rng(0))):
        weights, biases = random * _begins_random(learnt.layout, new, number), none.copy()
        if number == encoding - 1:
            codes = _first_codes(learnt, layout, looked_at)
            biases += layout.opens.T @ codes / layout.opens.sum(axis=0)[:, None]
            if number == 0:
                weights += _to_first_codes(learnt, layout, codes, biases)
        elif number == encoding:
            weights[-len(layout.choice_keys) :] = _typical_choices(learnt, layout)
        layers.append((weights, biases))
    return tuple(layers)


def _first_codes(learnt: DeepPipe, layout: NetworkLayout, sample: int) -> Singles:
    """Return (choices, selected), the first code of each algorithm.

    A known algorithm begins with its own mean code, a new one with the mean of its stage.
    sample: the number of random configurations.
    """
    known, embedding = learnt.layout, PipelineEmbedding(learnt.layout)
    read = known.read(known.space.sample(sample, seed=0))
    codes, choices = embedding.encode(learnt.layers, read), read[:, len(known.inputs) :]
    counts = choices.sum(axis=0)[:, None]
    each = choices.T @ codes / np.maximum(counts, 1.0)
    of_stage = known.within_stage(known.choice_keys) * (counts > 0.0)
    mean = (each * of_stage).sum(axis=0) / np.maximum(of_stage.sum(axis=0), 1.0)
    algorithms = _places(known.choice_keys, layout.choice_keys)
    looked_at = (algorithms >= 0) & (counts[algorithms, 0] > 0.0)
    columns = _places(known.selected_neuron_keys, layout.selected_neuron_keys)
    first = np.where(looked_at[:, None], each[algorithms], mean)[:, columns]
    within = layout.within_stage(layout.choice_keys) * (columns >= 0)
    begun: Singles = (first * within).astype(np.float32)
    return begun


def _to_first_codes(
    learnt: DeepPipe, layout: NetworkLayout, codes: Singles, biases: Singles
) -> Singles:
    """Return (inputs, selected), weights that add to the bias of a shared encoder to give codes."""
    columns = (learnt.layout.selected_neuron_keys, layout.selected_neuron_keys)
    keys = _KeyMap(learnt.layout.encoder_keys, layout.encoder_keys, *columns)
    carried, _ = keys.carry_over(learnt.layers[0][1], biases)
    weights = np.zeros((len(layout.inputs), codes.shape[1]), dtype=np.float32)
    within = layout.within_stage(layout.input_keys)
    for row, each in enumerate(layout.inputs):
        if each.parameter is None:
            encoder = layout.encoder_keys.index(layout.input_keys[row][:2])
            weights[row] = (codes[each.column] - carried[encoder]) * within[row]
    return weights


def _typical_choices(learnt: DeepPipe, layout: NetworkLayout) -> Singles:
    """Return (choices, hidden), the mean weights of the known algorithms of each choice's stage."""
    known = learnt.layout
    weights = learnt.layers[known.sizes.encoder_layers][0][-len(known.choice_keys) :]
    stages = [key[0] for key in known.choice_keys]
    alike = np.array([[key[0] == stage for stage in stages] for key in layout.choice_keys])
    mean: Singles = alike @ weights / np.maximum(alike.sum(axis=1, keepdims=True), 1)
    return mean.astype(np.float32)


@dataclass(frozen=True, slots=True)
class _KeyMap:
    """Carries a matrix with named rows and columns over to other rows and columns."""

    old_rows: Sequence[Key]
    new_rows: Sequence[Key]
    old_columns: Sequence[Key]
    new_columns: Sequence[Key]

    def carry_over(self, before: Singles, fresh: Singles) -> tuple[Singles, Singles]:
        """Return `fresh` with the entries of `before`, and 1 for all other entries."""
        rows = _places(self.old_rows, self.new_rows)
        columns = _places(self.old_columns, self.new_columns)
        known = (rows >= 0)[:, None] & (columns >= 0)[None, :]
        weights = np.where(known, before[rows[:, None], columns[None, :]], fresh)
        return weights.astype(np.float32), (~known).astype(np.float32)


def _places(old: Sequence[Key], new: Sequence[Key]) -> NDArray[np.int64]:
    """Return (new,), the place of each key among the old ones, or -1."""
    known = {key: place for place, key in enumerate(old)}
    return np.array([known.get(key, -1) for key in new], dtype=np.int64)


def _columns(embedding: PipelineEmbedding, number: int) -> Sequence[Key]:
    layout = embedding.layout
    if number < layout.sizes.encoder_layers:
        return layout.selected_neuron_keys
    last = number == layout.sizes.layers
    return [(str(place),) for place in range(layout.sizes.outputs if last else layout.hidden)]


def _begins_random(known: NetworkLayout, new: PipelineEmbedding, number: int) -> Singles:
    """Return (rows, 1), 1 for rows of new encoders that begin at random.

    The last layer of a new encoder in a known stage begins with the mean code instead.
    """
    rows, encoding = new.rows(number), new.layout.sizes.encoder_layers
    if number >= encoding:
        return np.zeros((len(rows), 1), dtype=np.float32)
    encoders, stages = set(known.encoder_keys), {stage.name for stage in known.stages}
    typical = stages if number == encoding - 1 else set()
    return np.array(
        [[key[:2] not in encoders and key[0] not in typical] for key in rows], dtype=np.float32
    )


def _new_algorithms(old: NetworkLayout, new: NetworkLayout) -> Choices:
    """Return the new algorithms of stages that past tasks knew."""
    stages, known = {stage.name for stage in old.stages}, set(old.choice_keys)
    return Choices(
        tuple(
            (number, place)
            for number, stage in enumerate(new.stages)
            for place, algorithm in enumerate(stage.algorithms)
            if stage.name in stages and (stage.name, algorithm) not in known
        )
    )


def additions(old: NetworkLayout, new: NetworkLayout) -> list[str]:
    """Return the parts of the new layout's space that the old one lacks, in words."""
    stages = {stage.name for stage in old.stages}
    algorithms = set(old.choice_keys)
    inputs = set(old.input_keys)
    found = []
    for stage in new.stages:
        if stage.name not in stages:
            found.append(f"stage '{stage.name}'")
            continue
        for algorithm in stage.algorithms:
            if (stage.name, algorithm) not in algorithms:
                found.append(f"algorithm '{algorithm}' of stage '{stage.name}'")
        for encoder in stage.encoders:
            if any((stage.name, stage.algorithms[a]) not in algorithms for a in encoder.algorithms):
                continue
            # An algorithm that lost its hyperparameters shares an encoder now and adds nothing.
            names = [
                i.key[0]
                for i in encoder.inputs
                if i.parameter is not None and (stage.name, encoder.name, *i.key) not in inputs
            ]
            found += [f"hyperparameter '{name}', or values of it" for name in dict.fromkeys(names)]
    return found


def _check_related(old: NetworkLayout, new: NetworkLayout) -> None:
    if not set(old.choice_keys) & set(new.choice_keys):
        raise MethodError(
            "a prior can be carried to a space that shares an algorithm with the one it was learnt "
            f"on, but {new.space!r} and {old.space!r} share none: learn from experience in the "
            "target's space",
            rule="no-shared-algorithm",
            field="target",
        )
