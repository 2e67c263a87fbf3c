"""Ray Tune's protocol without a cluster; benchmarks/reliability/ray_tune.py runs a real one."""

import pytest

tune = pytest.importorskip("ray.tune")

from foretune.errors import ArtifactError, SpaceError, UsageError  # noqa: E402
from foretune.integrations.ray_tune import ForetuneSearcher  # noqa: E402
from foretune.integrations.ray_tune_space import tune_space  # noqa: E402
from foretune.space.parameters import Kind  # noqa: E402
from tests.refusals import refuses  # noqa: E402

SPACE = {"lr": tune.loguniform(1e-4, 1.0), "net": {"width": tune.randint(1, 9)}, "fixed": 3}


def searcher(**options):
    made = ForetuneSearcher("random", seed=1, **options)
    assert made.set_search_properties("loss", "min", SPACE)
    return made


def test_domains_become_hyperparameters():
    found = tune_space(
        {
            "a": tune.uniform(0.0, 1.0),
            "b": tune.lograndint(1, 100),
            "c": tune.quniform(0.0, 0.3, 0.1),
            "d": tune.choice(["x", "y"]),
            "e": tune.choice([(1, 2), None]),
            "f": 7,
        }
    )
    kinds = {p.name: p for p in found.space.parameters}
    assert set(kinds) == {"a", "b", "c", "d", "e"}
    assert (kinds["b"].low, kinds["b"].high, kinds["b"].log) == (1, 99, True)
    assert kinds["c"].choices == (0.0, 0.1, 0.2, 0.3)
    assert kinds["e"].choices == ((1, 2), None)
    assert found.to_tune_config({"e": (1, 2)}) == {"e": (1, 2)}
    assert found.to_tune_config({"e": None}) == {"e": None}
    assert tune_space({"f": 7}) is None


def test_floats_between_whole_bounds_are_floats():
    found = tune_space({"a": tune.uniform(0, 1), "b": tune.loguniform(1, 10)})
    assert [p.kind for p in found.space.parameters] == [Kind.FLOAT, Kind.FLOAT]


@pytest.mark.parametrize(
    "domain",
    [
        tune.randn(0, 1),
        tune.sample_from(lambda: 1),
        tune.grid_search([1]),
        tune.quniform(0, 1, 1e-6),
    ],
)
def test_settings_that_cannot_be_searched_are_named(domain):
    with pytest.raises(SpaceError, match="'x"):
        tune_space({"x": domain})


def test_suggestions_are_nested_and_outcomes_are_told():
    one = searcher()
    config = one.suggest("a")
    assert set(config) == {"lr", "net"}
    assert 1 <= config["net"]["width"] <= 8
    one.suggest("b")
    one.on_trial_complete("a", {"loss": 2.0})
    one.suggest("c")
    one.on_trial_complete("b", error=True)
    one.on_trial_complete("c", {"loss": "a text"})
    one.on_trial_complete("unknown", {"loss": 1.0})
    told = one._optimizer.told
    assert told.losses[0, 0] == 2.0
    assert told.is_success.tolist() == [True, False, False]
    assert not one._optimizer.pending


def test_larger_is_better_where_tune_says_so():
    one = ForetuneSearcher("random", space={"x": (0.0, 1.0)}, metric="score", mode="max")
    one.suggest("a")
    one.on_trial_complete("a", {"score": 2.0})
    assert one._optimizer.told.losses.tolist() == [[-2.0]]


def test_a_restored_searcher_goes_on_as_the_other(tmp_path):
    one = searcher()
    for name in "abc":
        one.suggest(name)
    one.on_trial_complete("b", {"loss": 1.0})
    one.save(str(tmp_path / "state"))
    other = searcher()
    other.restore(str(tmp_path / "state"))
    for each in (one, other):
        each.on_trial_complete("a", {"loss": 3.0})
    assert other.suggest("d") == one.suggest("d")
    assert sorted(other._ids) == ["c", "d"]


@pytest.mark.parametrize("text", ["{}", "[", '{"format": "other", "trials": []}'])
def test_a_state_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "state").write_text(text)
    with refuses("other-search", kind=ArtifactError):
        searcher().restore(str(tmp_path / "state"))


def test_an_exhausted_space_ends_tune():
    one = ForetuneSearcher("random", space={"x": ["a", "b"]}, metric="loss", mode="min")
    assert {one.suggest("1")["x"], one.suggest("2")["x"]} == {"a", "b"}
    assert one.suggest("3") is None
    for name in "12":
        one.on_trial_complete(name, {"loss": 1.0})
    assert one.suggest("3") == ForetuneSearcher.FINISHED


def test_two_spaces_or_none_are_refused():
    one = ForetuneSearcher("random", space={"x": (0.0, 1.0)})
    assert not one.set_search_properties("loss", "min", SPACE)
    assert one.set_search_properties("loss", "min", {"fixed": 3})
    with refuses("nothing-to-choose", kind=UsageError):
        ForetuneSearcher("random", metric="loss", mode="min").suggest("a")
