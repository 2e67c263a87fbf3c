import pytest

from foretune.errors import MethodError
from foretune.search import METHODS, method
from foretune.search.scoring import ACQUISITIONS


def test_every_method_names_known_parts() -> None:
    for name, entry in METHODS.items():
        assert entry.name == name
        assert entry.acquisition in ACQUISITIONS
        assert entry.design.how in ("random", "sobol", "prior")


def test_a_misspelt_name_gets_a_hint() -> None:
    with pytest.raises(MethodError, match="did you mean random"):
        method("radnom")


def test_an_unknown_name_says_where_to_look() -> None:
    with pytest.raises(MethodError, match="`foretune methods`"):
        method("zzz")


def test_a_method_that_transfers_asks_for_experience() -> None:
    for entry in METHODS.values():
        if entry.needs_experience:
            with pytest.raises(MethodError, match="--experience FILE"):
                entry.learn(None, seed=0)
