import copy
import pickle

import numpy as np
import pytest

from foretune.errors import MethodError, MissingExtraError
from foretune.experience import Experience, Metric
from foretune.search import METHODS, Method, method
from foretune.search.acquisition import ACQUISITIONS
from foretune.search.method_entry import DESIGNS
from foretune.search.registry import auto_learner
from foretune.space import Space
from tests.refusals import refuses


def test_every_method_names_known_parts() -> None:
    for name, entry in METHODS.items():
        assert entry.name == name
        assert entry.acquisition in ACQUISITIONS
        assert entry.design.how in DESIGNS


@pytest.mark.parametrize(
    ("name", "how", "trials", "acquisition"),
    [
        ("cts", "prior", None, "thompson"),
        ("ts", "prior", None, "thompson"),
        ("gcp-prior-paper", "prior", 5, "ei"),
        ("gp-prior", "prior", 5, "ei"),
        ("gcp-prior", "prior", 1, "ei"),
        ("dre-ri", "random", 5, "own"),
        ("deeppipe-ri", "random", 5, "ei"),
        ("latent-cash", "per-algorithm", 2, "ei"),
        ("latent-cash-first", "per-algorithm", 2, "ei"),
        ("latent-cash-random", "per-algorithm", 2, "ei"),
        ("latent-cash-ri", "per-algorithm", 2, "ei"),
        ("bandit-bo", "per-algorithm", 2, "ei"),
    ],
)
def test_searches_open_as_their_papers_say(name, how, trials, acquisition) -> None:
    entry = METHODS[name]
    assert (entry.design.how, entry.design.trials, entry.acquisition) == (how, trials, acquisition)


def test_past_tasks_teach_who_needs_them_and_who_can_do_without() -> None:
    assert METHODS["ws-gp"].transfers
    assert METHODS["auto"].transfers
    assert not METHODS["gp"].transfers


def test_a_misspelt_name_gets_a_hint() -> None:
    with pytest.raises(MethodError, match="did you mean random"):
        method("radnom")


def test_an_unknown_name_says_where_to_look() -> None:
    with pytest.raises(MethodError, match="`foretune methods`"):
        method("zzz")


@pytest.mark.parametrize("given", [3, None, ["gp"]])
def test_invalid_names_are_refused(given) -> None:
    with refuses("method-by-name", value=given, kind=MethodError):
        method(given)


def test_a_method_that_transfers_asks_for_experience() -> None:
    for entry in METHODS.values():
        if entry.needs_experience:
            with refuses("needs-experience", value=entry.name, kind=MethodError):
                entry.learn(None, seed=0)


def past(space: Space, **meta_features: dict[str, float]) -> Experience:
    configs = space.sample(1, seed=0)
    return Experience.from_matrix(
        space,
        configs,
        ["one", "two"],
        [Metric("loss")],
        {"loss": np.array([[0.1], [0.2]])},
        meta_features=meta_features,
    )


def test_a_method_that_reads_meta_features_refuses_past_tasks_without() -> None:
    space = Space.of({"model": {"svm": {"C": (0.1, 10.0)}, "bayes": {}}})
    needy = [entry for entry in METHODS.values() if entry.needs_meta_features]
    assert needy
    for entry in needy:
        with refuses("past-tasks-need-meta-features", value=entry.name, kind=MethodError):
            entry.learn(past(space, one={}), seed=0)
        assert entry.learn(past(space, one={"rows": 3.0}), seed=0)


def test_past_tasks_of_constants_alone_teach_nothing() -> None:
    constant = past(Space.of({"a": 7}), one={"rows": 3.0})
    for entry in METHODS.values():
        if entry.transfers:
            with refuses("past-space-has-choices", value=("a",), kind=MethodError):
                entry.learn(constant, seed=0)
    assert METHODS["gp"].learn(constant, seed=0)


@pytest.mark.parametrize(("package", "extra"), [("jax.numpy", "neural"), ("lightgbm", "automl")])
def test_a_missing_package_is_named_with_its_extra(package: str, extra: str) -> None:
    def unavailable() -> None:
        raise ModuleNotFoundError(name=package)

    with refuses("missing-extra", field=extra, kind=MissingExtraError):
        Method("deep", "", unavailable).learn(None, seed=0)


def test_a_mistake_of_ours_is_not_called_a_missing_extra() -> None:
    def broken() -> None:
        raise ModuleNotFoundError(name="foretune.misspelt")

    with pytest.raises(ModuleNotFoundError):
        Method("broken", "", broken).learn(None, seed=0)


def test_a_method_travels_by_its_name() -> None:
    for entry in METHODS.values():
        assert pickle.loads(pickle.dumps(entry)) is entry


def test_a_method_of_ones_own_travels_as_it_is() -> None:
    own = Method("gp", "not the one of the registry", dict)
    for again in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own)):
        assert again == own


def test_auto_learns_without_jax_as_well() -> None:
    usual, without = method("auto").learner(), auto_learner(has_jax=False)
    assert [*usual.taught] == ["adaptive-portfolio", "gcp-prior", "deeppipe"]
    assert [*without.taught] == ["adaptive-portfolio", "factors"]
    assert [*usual.from_nothing] == [*without.from_nothing] == ["gcp-smooth"]
    # Priors that were learnt elsewhere can be read.
    assert {"gcp-prior", "deeppipe", "factors"} <= set(without.others)
