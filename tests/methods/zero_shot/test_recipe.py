"""Each option of a recipe changes what is built: none is lost on its way to the builder."""

import numpy as np

from foretune.methods.zero_shot.build import Recipe, build
from foretune.methods.zero_shot.builder import Caps
from tests.methods.zero_shot.examples import SPACE, experience_of

CONFIGS = SPACE.sample(3, seed=2)
ERRORS = np.array([[0.10, 0.30, 0.22], [0.10, 0.30, 0.22], [0.90, 0.30, 0.60]])
"""The first is best by the median; the second is best by the mean, and by the worst task."""


def first_pick(**options: object) -> int:
    built = build(experience_of(ERRORS, CONFIGS), Recipe(1, "naive", **options))
    return CONFIGS.dicts().index(built.configs.dicts()[0])


def test_the_aggregate_decides() -> None:
    assert first_pick(aggregate="median", normalisation="none") == 0
    assert first_pick(aggregate="mean", normalisation="none") == 1


def test_the_normalisation_decides() -> None:
    # As ranks the first is best on two of three tasks: 0, 0 and 2 thirds.
    assert first_pick(normalisation="rank") == 0
    assert first_pick(normalisation="none") == 1
    built = build(experience_of(ERRORS, CONFIGS), Recipe(1, normalisation="min-max"))
    assert built.normalisation == "min-max"


def test_the_seed_decides_which_configurations_are_tried() -> None:
    configs = SPACE.sample(30, seed=0)
    errors = np.random.default_rng(0).random((4, 30))
    experience = experience_of(errors, configs)
    found = [build(experience, Recipe(2, "naive", 12, seed=seed)).configs for seed in range(4)]
    assert len({str(each.dicts()) for each in found}) > 1


def test_caps_reach_the_builder() -> None:
    configs = SPACE.sample(40, seed=0)
    experience = experience_of(np.random.default_rng(0).random((3, 40)), configs)
    few = build(experience, Recipe(2, "obo", 12, caps=Caps(most_candidates=4)))
    assert len(few.configs) == 2
    assert few.jobs == 12
