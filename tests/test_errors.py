"""Errors carry their data, also from one process to another."""

import pickle

import pytest

from foretune.errors import ExperienceError, ForetuneError, MissingExtraError, UsageError
from tests.refusals import refuses


def test_an_error_carries_rule_field_and_value() -> None:
    error = UsageError("size must be positive, but got -1", rule="size", field="size", value=-1)
    assert str(error) == "size must be positive, but got -1"
    assert (error.rule, error.field, error.value) == ("size", "size", -1)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "error",
    [
        ForetuneError("plain"),
        ExperienceError("no column", rule="unknown-column", field="lr", value=("a", "b")),
        MissingExtraError("ray", "ray", "a cluster"),
    ],
)
def test_an_error_survives_pickle_whole(error: ForetuneError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.rule, again.field, again.value) == (
        str(error),
        error.rule,
        error.field,
        error.value,
    )


def test_the_wrong_rule_or_field_is_noticed() -> None:
    with pytest.raises(AssertionError), refuses("other"):
        raise UsageError("no", rule="one")
    with pytest.raises(AssertionError), refuses("one", field="a"):
        raise UsageError("no", rule="one", field="b")
