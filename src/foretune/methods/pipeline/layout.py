"""The shape of a network on a space: encoders by stage, inputs by name, masks.

Each input, encoder and choice has a key made of names. Networks of two spaces are compared by these
keys alone, so weights that were learnt on one space can be used on the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Ints
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind, Parameter
from foretune.space.structure import Stage

Key: TypeAlias = tuple[str, ...]
Singles: TypeAlias = NDArray[np.float32]

LEAST_HIDDEN = 32
"""The least neurons of a layer. With very few rectified neurons all of them could be 0."""
WIDEST = 320
"""The most neurons of a layer, because a training step costs the square of the width. The widest
recorded space, ZAP, has 280. With eight neurons for each of hundreds of columns, learning would
take hours."""
SHARED = "algorithms without hyperparameters"
"""The name of the encoder that they share in each stage."""


@dataclass(frozen=True, slots=True)
class Input:
    """One number that an encoder reads."""

    key: Key
    """(parameter, meaning of the number), or (algorithm,) for the choice of an algorithm."""
    column: int
    """The column of `Encoded.x`, or of the choices if `parameter` is None."""
    parameter: int | None
    """The hyperparameter that must be active; None for an algorithm without any."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """The sub-network of one algorithm, or of all algorithms without hyperparameters."""

    name: str
    inputs: tuple[Input, ...]
    algorithms: tuple[int, ...]
    """The places of the algorithms in the stage."""


@dataclass(frozen=True, slots=True)
class StageLayout:
    """The encoders of one stage, all of the same width."""

    name: str
    size: int
    """L_i, the most inputs of an encoder when the network was made."""
    encoders: tuple[Encoder, ...]
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers that decide a network's shape."""

    factor: int = 8
    """F, the neurons for each input. There are fewer if their sum exceeds `widest`."""
    encoder_layers: int = 1
    layers: int = 4
    """The number of encoder and aggregation layers, without the projection to the latent space."""
    latent: int = 20
    learns_mean: bool = False
    """Whether the network also predicts the loss of a pipeline on a task without trials."""
    widest: int = WIDEST
    """The most neurons of an aggregation layer, and of encoders if each input still has one."""

    @property
    def outputs(self) -> int:
        """The number of latent dimensions, plus one if the mean is learnt."""
        return self.latent + self.learns_mean


@dataclass(frozen=True)
class NetworkLayout:
    """The network's shape on one space."""

    space: Space
    sizes: Sizes
    stages: tuple[StageLayout, ...]
    hidden: int
    """The neurons of each aggregation layer: F sum_i L_i of the space that the network was made
    for, between `LEAST_HIDDEN` and `Sizes.widest`.
    """

    @classmethod
    def of(cls, space: Space, sizes: Sizes, like: "NetworkLayout | None" = None) -> "NetworkLayout":
        """Return the shape for a space, with the widths of `like` if it is given."""
        known = {} if like is None else {stage.name: stage.size for stage in like.stages}
        stages = []
        first_choice = 0
        for stage in space.structure.stages:
            encoders = tuple(_encoders(stage, space.parameters, first_choice))
            widest = max(len(encoder.inputs) for encoder in encoders)
            names = tuple(algorithm.name for algorithm in stage.algorithms)
            stages.append(StageLayout(stage.name, known.get(stage.name, widest), encoders, names))
            first_choice += len(names)
        if like is not None:
            return cls(space, sizes, tuple(stages), like.hidden)
        inputs = sum(stage.size for stage in stages)
        factor = max(min(sizes.factor, sizes.widest // inputs), 1)
        hidden = max(min(factor * inputs, sizes.widest), LEAST_HIDDEN)
        return cls(space, replace(sizes, factor=factor), tuple(stages), hidden)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs of all encoders, in order."""
        return tuple(i for s in self.stages for e in s.encoders for i in e.inputs)

    @cached_property
    def input_keys(self) -> tuple[Key, ...]:
        """The keys of the inputs: stage, encoder and own key."""
        return tuple(
            (stage.name, encoder.name, *i.key)
            for stage in self.stages
            for encoder in stage.encoders
            for i in encoder.inputs
        )

    @cached_property
    def _input_encoders(self) -> list[int]:
        places = {key: place for place, key in enumerate(self.encoder_keys)}
        return [places[key[:2]] for key in self.input_keys]

    @cached_property
    def choice_keys(self) -> tuple[Key, ...]:
        """(stage, algorithm) for every column of the one-hot of choices."""
        return tuple((stage.name, name) for stage in self.stages for name in stage.algorithms)

    @cached_property
    def encoder_keys(self) -> tuple[Key, ...]:
        """(stage, encoder)"""
        return tuple((stage.name, e.name) for stage in self.stages for e in stage.encoders)

    @cached_property
    def selected_neuron_keys(self) -> tuple[Key, ...]:
        """(stage, number) for every neuron of the encoder that is selected in each stage."""
        return tuple(
            (stage.name, str(number))
            for stage in self.stages
            for number in range(self.sizes.factor * stage.size)
        )

    @cached_property
    def neuron_keys(self) -> tuple[Key, ...]:
        """(stage, encoder, number) for every neuron of all encoders."""
        return tuple(
            (stage.name, encoder.name, str(number))
            for stage in self.stages
            for encoder in stage.encoders
            for number in range(self.sizes.factor * stage.size)
        )

    @cached_property
    def neuron_places(self) -> Ints:
        """(neurons,), the place of each neuron among the selected ones if its encoder is open."""
        places = {key: place for place, key in enumerate(self.selected_neuron_keys)}
        return np.array([places[stage, number] for stage, _, number in self.neuron_keys])

    @cached_property
    def neuron_encoders(self) -> Ints:
        """(neurons,): the encoder of each neuron."""
        places = {key: place for place, key in enumerate(self.encoder_keys)}
        return np.array([places[key[:2]] for key in self.neuron_keys])

    @cached_property
    def opens(self) -> Singles:
        """(choices, encoders), 1 where a choice opens an encoder."""
        opened = [
            (stage.name, encoder.name)
            for stage in self.stages
            for place in range(len(stage.algorithms))
            for encoder in stage.encoders
            if place in encoder.algorithms
        ]
        return _same(opened, self.encoder_keys)

    def within_stage(self, rows: Sequence[Key]) -> Singles:
        """(rows, selected), 1 where a row's key begins with the stage of a selected neuron."""
        return _same([key[:1] for key in rows], [key[:1] for key in self.selected_neuron_keys])

    def read(self, configs: Encoded) -> Singles:
        """Return (n, inputs + choices), the input of the network, 0 where inactive."""
        chosen = self.space.structure.algorithm_of(configs.values)
        choices = np.concatenate(
            [
                np.arange(len(stage.algorithms)) == chosen[:, [place]]
                for place, stage in enumerate(self.stages)
            ],
            axis=1,
        )
        opened = choices.astype(np.float32) @ self.opens
        columns = np.empty((len(configs), len(self.inputs)), dtype=np.float32)
        for place, (wanted, encoder) in enumerate(
            zip(self.inputs, self._input_encoders, strict=True)
        ):
            if wanted.parameter is None:
                columns[:, place] = choices[:, wanted.column]
            else:
                # A hyperparameter of several algorithms reaches the chosen one's encoder only.
                active = configs.active[:, wanted.parameter] & (opened[:, encoder] > 0)
                columns[:, place] = np.where(active, configs.x[:, wanted.column], 0.0)
        return np.concatenate([columns, choices.astype(np.float32)], axis=1)


def _encoders(stage: Stage, parameters: Sequence[Parameter], first_choice: int) -> list[Encoder]:
    """Return an encoder for each algorithm with hyperparameters, and one for all others."""
    own, plain = [], []
    for place, algorithm in enumerate(stage.algorithms):
        inputs = [i for p in algorithm.parameters for i in _inputs(parameters[p], p)]
        if inputs:
            own.append(Encoder(algorithm.name, tuple(inputs), (place,)))
        else:
            plain.append(place)
    if plain:
        inputs = [Input((stage.algorithms[p].name,), first_choice + p, None) for p in plain]
        own.append(Encoder(SHARED, tuple(inputs), tuple(plain)))
    return own


def _inputs(parameter: Parameter, index: int) -> list[Input]:
    """Return the columns of one hyperparameter. The key of a number has its range: its unit.

    A constant has no column.
    """
    columns = range(parameter.columns.start, parameter.columns.stop)
    if parameter.kind is Kind.CONSTANT:
        return []
    if len(columns) == 1:
        meaning = f"{parameter.kind} {parameter.allowed_text}"
        return [Input((parameter.name, meaning), columns[0], index)]
    return [
        Input((parameter.name, repr(choice)), column, index)
        for column, choice in zip(columns, parameter.choices, strict=True)
    ]


def _same(rows: Sequence[Key], columns: Sequence[Key]) -> Singles:
    """Return (rows, columns), 1 where the keys are equal."""
    number = {key: place for place, key in enumerate(dict.fromkeys([*rows, *columns]))}
    of_rows = np.array([number[key] for key in rows], dtype=np.int64)
    of_columns = np.array([number[key] for key in columns], dtype=np.int64)
    same: Singles = (of_rows[:, None] == of_columns[None, :]).astype(np.float32)
    return same
