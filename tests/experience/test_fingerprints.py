from dataclasses import replace

import numpy as np
import pytest

from foretune.experience import Direction, Experience, Metric
from foretune.experience.fingerprints import fingerprint_of_evaluations, fingerprint_of_lessons
from foretune.space import Space

SPACE = Space.of({"x": (0.0, 1.0)})


def made(**options):
    """Three evaluations on two tasks."""
    return Experience.build(
        SPACE,
        [Metric("score", Direction.MAX)],
        ["a", "b"],
        [0, 0, 1],
        SPACE.encode([{"x": 0.25}, {"x": 0.5}]),
        [0, 1, 1],
        [0.5, 0.75, 0.25],
        **options,
    )


EVALUATED_OTHERWISE = {
    "direction": replace(made(), metrics=(Metric("score", Direction.MIN),)),
    "metric": replace(made(), metrics=(Metric("other", Direction.MAX),)),
    "values": replace(made(), values=made().values + 1.0),
    "tasks": replace(made(), tasks=("a", "c")),
    "fidelity": made(fidelity=[1.0, 1.0, 2.0]),
    "rows": made().without(["b"]),
}
TAUGHT_OTHERWISE = {
    "seconds": made(seconds=[1.0, 2.0, 3.0]),
    "meta-features": made(meta_features={"a": {"rows": 5.0}}),
    "validation": made(splits={"learning": {"train": ["a"], "validation": ["b"]}}),
    "training": made(splits={"learning": {"train": ["a"]}}),
}


@pytest.mark.parametrize("name", EVALUATED_OTHERWISE)
def test_other_evaluations_have_another_fingerprint(name):
    other = EVALUATED_OTHERWISE[name]
    assert fingerprint_of_evaluations(other) != fingerprint_of_evaluations(made())
    assert fingerprint_of_lessons(other) != fingerprint_of_lessons(made())


@pytest.mark.parametrize("name", TAUGHT_OTHERWISE)
def test_more_experience_changes_the_fingerprint_of_lessons(name):
    other = TAUGHT_OTHERWISE[name]
    assert fingerprint_of_evaluations(other) == fingerprint_of_evaluations(made())
    assert fingerprint_of_lessons(other) != fingerprint_of_lessons(made())


def test_line_breaks_do_not_make_other_names_equal():
    one, other = (replace(made(), tasks=tasks) for tasks in (("a\nb", "c"), ("a", "b\nc")))
    assert fingerprint_of_evaluations(one) != fingerprint_of_evaluations(other)


def test_saying_that_all_train_is_saying_nothing():
    told = made(splits={"learning": {"train": ["a", "b"]}})
    assert fingerprint_of_lessons(told) == fingerprint_of_lessons(made())


def test_equal_experience_has_equal_fingerprints():
    again = replace(made(), values=np.array(made().values, order="F"))
    assert fingerprint_of_evaluations(again) == fingerprint_of_evaluations(made())
    assert fingerprint_of_lessons(again) == fingerprint_of_lessons(made())


def test_saving_a_part_leaves_its_fingerprints(tmp_path):
    part = made(starts={"b": {"first": [1]}}).only(["b"])
    part.save(tmp_path / "part.parquet")
    again = Experience.open(tmp_path / "part.parquet")
    assert (len(part.configs), len(again.configs)) == (2, 1)
    assert fingerprint_of_evaluations(again) == fingerprint_of_evaluations(part)
    assert fingerprint_of_lessons(again) == fingerprint_of_lessons(part)


def test_results_of_earlier_releases_can_still_be_extended():
    # A change of this number would refuse all files of results that exist.
    want = "684229e13992fae456f0a95f8dec224eeb61b93e74b17dcc0aa20c0a810e6cff"
    assert fingerprint_of_evaluations(made()) == want
