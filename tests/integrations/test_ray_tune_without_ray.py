"""Choices of Tune and experience of several metrics, with stand-ins for the classes of Tune."""

import json
import sys
import warnings
from fractions import Fraction
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

from foretune.errors import ArtifactError, ForetuneWarning, SpaceError
from foretune.experience import Direction, Experience, Metric
from foretune.integrations.ray_tune_space import tune_space
from foretune.space import Encoded, Space
from foretune.space.parameters import Kind
from foretune.stores import TableColumns, import_experience
from tests.refusals import refuses, warns

SEARCHER = "foretune.integrations.ray_tune"


class Searcher:
    FINISHED = "FINISHED"

    def __init__(self, metric=None, mode=None):
        pass


class Domain:
    pass


class Categorical(Domain):
    def __init__(self, categories):
        self.categories = list(categories)


class Float(Domain):
    cast = float

    def __init__(self, lower, upper, sampler=None):
        self.lower, self.upper, self.get_sampler = lower, upper, lambda: sampler


class Integer(Float):
    cast = int


class LogUniform:
    pass


class Normal:
    pass


class Quantized:
    pass


STAND_INS = (Searcher, Domain, Categorical, Float, Integer, LogUniform, Normal, Quantized)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    for name in ("ray", "ray.tune", "ray.tune.search", "ray.tune.search.sample"):
        module = ModuleType(name)
        for stand_in in STAND_INS:
            setattr(module, stand_in.__name__, stand_in)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def searcher(stand_ins, monkeypatch):
    monkeypatch.delitem(sys.modules, SEARCHER, raising=False)
    yield import_module(SEARCHER).ForetuneSearcher
    del sys.modules[SEARCHER]


def functions():
    """Two functions, which lie somewhere else each time."""

    def relu(x):
        return x

    def tanh(x):
        return -x

    return [relu, tanh]


class Bare:
    """Written with its address."""


@pytest.mark.parametrize(
    "categories",
    [
        [False, 0, 1],
        [None, "None", "x"],
        [1, 2.0, True],
        [(1, 2), "(1, 2)"],
        [[64, 64], [128], None],
        [[{"a": 1}], [len]],
        [Bare(), Bare()],
        [lambda: 1, lambda: 2],
        [{"a": 1}, {"b": 2}],
        functions(),
    ],
)
def test_every_choice_is_kept_and_comes_back_as_itself(categories):
    found = tune_space({"a": Categorical(categories)})
    choices = found.space.parameters[0].choices
    assert not any("0x" in str(choice) for choice in choices)
    back = [found.to_tune_config({"a": choice})["a"] for choice in choices]
    texts = [isinstance(each, str) for each in categories]
    for one, other, text in zip(back, categories, texts, strict=True):
        assert one == other if text else one is other


def test_floats_between_whole_bounds_are_floats():
    """As in tune.uniform(0, 1) and tune.loguniform(1, 10)."""
    found = tune_space({"a": Float(0, 1), "b": Float(1, 10, LogUniform()), "c": Integer(0, 9)})
    assert [p.kind for p in found.space.parameters] == [Kind.FLOAT, Kind.FLOAT, Kind.INT]


@pytest.mark.parametrize(
    "categories", [[None, Float(0, 1)], [{"lr": Float(0, 1)}, {}], [[1, (Categorical([2]),)]]]
)
def test_choices_among_search_spaces_are_refused(categories):
    """Tune draws from them only without a searcher: the program would be handed the spaces."""
    with refuses("choice-of-spaces", field="net/opt", kind=SpaceError):
        tune_space({"net": {"opt": Categorical(categories)}})


def test_a_choice_that_is_named_twice_is_one():
    found = tune_space({"a": Categorical([1, 1, 2])})
    assert found.space.parameters[0].choices == (1, 2)


def test_a_search_among_functions_goes_on_in_another_process(searcher, tmp_path):
    def begun():
        made = searcher("random", seed=0)
        assert made.set_search_properties("loss", "min", {"act": Categorical(functions())})
        return made

    one = begun()
    first = one.suggest("a")["act"].__name__
    one.save(str(tmp_path / "state"))
    other = begun()
    other.restore(str(tmp_path / "state"))
    assert {first, other.suggest("b")["act"].__name__} == {"relu", "tanh"}


def test_a_search_among_lists_goes_on_in_another_process(searcher, tmp_path):
    layers = {"layers": Categorical([[64, 64], [128], None])}
    one, other = searcher("random", seed=0), searcher("random", seed=0)
    for each in (one, other):
        assert each.set_search_properties("loss", "min", layers)
    first = [one.suggest(name)["layers"] for name in "ab"]
    one.on_trial_complete("a", {"loss": 1.0})
    one.save(str(tmp_path / "state"))
    other.restore(str(tmp_path / "state"))
    found = [*first, other.suggest("c")["layers"]]
    assert sorted(map(str, found)) == ["None", "[128]", "[64, 64]"]


SEARCHED = {
    "x": Float(0, 1),
    "reg": Categorical([None, "l2"]),
    "layers": Categorical([[8], [8, 8]]),
    "setting": 3,
}


def imported(folder):
    """What a run of Ray Tune has left, read without its space; the best has x=0.5 and [8, 8]."""
    for number, x in enumerate([0.1, 0.5, 0.9] * 2):
        trial = folder / ("one" if number < 3 else "two") / f"t{number}"
        trial.mkdir(parents=True)
        is_best = x == 0.5
        config = {"x": x, "reg": [None, "l2"][is_best], "layers": [8] * (1 + is_best)}
        (trial / "params.json").write_text(json.dumps({**config, "setting": 3}))
        (trial / "result.json").write_text(json.dumps({"loss": abs(x - 0.5) - is_best}))
    return import_experience("ray", folder, columns=TableColumns(values={"loss": "min"}))


def test_past_trials_whose_space_was_read_off_them_teach(searcher, tmp_path):
    one = searcher("zero-shot", experience=imported(tmp_path))
    assert one.set_search_properties("loss", "min", SEARCHED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        assert one.suggest("a") == {"x": 0.5, "reg": "l2", "layers": [8, 8]}


def test_past_trials_outside_of_the_space_are_left_out(searcher, tmp_path):
    one = searcher("zero-shot", experience=imported(tmp_path))
    assert one.set_search_properties("loss", "min", SEARCHED | {"x": Float(0.6, 1)})
    with pytest.warns(ForetuneWarning) as said:
        assert one.suggest("a")["x"] == 0.9
    assert [(each.filename, each.message.rule) for each in said] == [
        (__file__, "past-runs-of-another-space")
    ]


def test_past_trials_teach_what_they_know_of_a_space_that_has_grown(searcher, tmp_path):
    one = searcher("zero-shot", experience=imported(tmp_path))
    assert one.set_search_properties("loss", "min", SEARCHED | {"new": Float(0, 1)})
    with warns("past-runs-of-another-space"):
        known = one.suggest("a")
    assert known == {"x": 0.5, "reg": "l2", "layers": [8, 8], "new": known["new"]}


def of_two_metrics(space):
    """Two tasks, on which the time is best at 0.1 and the accuracy at 0.8."""
    configs = space.from_values(np.linspace(0.0, 1.0, 21)[:, None])
    x = np.tile(configs.values[:, 0], 2)
    return Experience.build(
        space,
        [Metric("time"), Metric("accuracy", Direction.MAX)],
        ["one", "two"],
        np.repeat([0, 1], 21),
        Encoded.concat([configs, configs]),
        np.arange(42),
        np.column_stack([(x - 0.1) ** 2, -((x - 0.8) ** 2)]),
    )


@pytest.mark.parametrize(
    ("metric", "mode", "best"), [("accuracy", "max", 0.8), ("time", "min", 0.1)]
)
def test_the_metric_of_the_search_is_learnt_among_several(searcher, metric, mode, best):
    space = Space.of({"x": (0.0, 1.0)})
    past = of_two_metrics(space)
    one = searcher("ws-gp", space=space, experience=past, metric=metric, mode=mode)
    assert one.suggest("a")["x"] == pytest.approx(best)


def test_a_metric_that_an_experience_of_several_lacks_is_named(searcher):
    space = Space.of({"x": (0.0, 1.0)})
    one = searcher(
        "ws-gp", space=space, experience=of_two_metrics(space), metric="loss", mode="min"
    )
    with refuses("no-metric-of-the-search", value=["time", "accuracy"]):
        one.suggest("a")


@pytest.mark.parametrize(("metric", "mode"), [("accuracy", "min"), ("time", "max")])
@pytest.mark.parametrize("alone", [True, False])
def test_a_mode_that_the_experience_contradicts_is_refused(searcher, metric, mode, alone):
    space = Space.of({"x": (0.0, 1.0)})
    past = of_two_metrics(space)
    past = past.with_metrics([metric]) if alone else past
    one = searcher("ws-gp", space=space, experience=past, metric=metric, mode=mode)
    with refuses("other-direction", field="mode", value=mode):
        one.suggest("a")


def test_a_metric_of_another_name_may_have_another_direction(searcher):
    space = Space.of({"x": (0.0, 1.0)})
    past = of_two_metrics(space).with_metrics(["accuracy"])
    one = searcher("ws-gp", space=space, experience=past, metric="loss", mode="min")
    assert one.suggest("a")["x"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("metric", "mode"),
    [(None, None), ("loss", None), (None, "min"), ("loss", "mn"), (["a", "b"], ["min", "max"])],
)
def test_a_search_without_an_aim_is_refused_before_any_trial(searcher, metric, mode):
    one = searcher("random", space={"x": (0.0, 1.0)}, metric=metric, mode=mode)
    with refuses("no-metric-and-mode", value=(metric, mode)):
        one.suggest("a")
    assert one.set_search_properties("loss", "min", {})
    assert set(one.suggest("a")) == {"x"}


@pytest.mark.parametrize(
    ("given", "rule"), [("experience", "not-an-experience"), ("prior", "not-a-prior")]
)
def test_a_folder_without_knowledge_is_refused(searcher, given, rule):
    one = searcher("gp", space={"x": (0.0, 1.0)}, metric="loss", mode="min", **{given: 5})
    with refuses(rule, field=given, value=5):
        one.suggest("a")


def test_a_metric_that_is_not_reported_is_warned_of_once(searcher):
    one = searcher("random", space={"x": (0.0, 1.0)}, metric="lss", mode="min")
    for name in "ab":
        one.suggest(name)
    report = {"loss": 0.1, "pid": 7, "done": True, "host": "here"}
    with warns("metric-not-reported", field="lss"):
        one.on_trial_complete("a", report)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        one.on_trial_complete("b", report)
    assert one._optimizer.told.is_success.tolist() == [False] * 2


@pytest.mark.parametrize(
    "value", ["0.5", None, {"a": 1}, np.array([0.5]), np.array("0.5"), 0.5j], ids=str
)
def test_a_metric_that_is_no_number_is_warned_of_once(searcher, value):
    one = searcher("random", space={"x": (0.0, 1.0)}, metric="loss", mode="min")
    for name in "ab":
        one.suggest(name)
    with warns("metric-not-reported", field="loss"):
        one.on_trial_complete("a", {"loss": value})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        one.on_trial_complete("b", {"loss": value})
    assert one._optimizer.told.is_success.tolist() == [False] * 2


@pytest.mark.parametrize("value", [np.array(0.5), np.float32(0.5), Fraction(1, 2)], ids=repr)
def test_a_number_may_be_of_another_type_than_float(searcher, value, tmp_path):
    one = searcher("random", space={"x": (0.0, 1.0)}, metric="gain", mode="max")
    one.suggest("a")
    one.on_trial_complete("a", {"gain": value})
    assert one._optimizer.told.losses.tolist() == [[-0.5]]
    one.save(str(tmp_path / "state"))


def test_a_loss_that_is_not_finite_is_a_failure_without_a_warning(searcher):
    one = searcher("random", space={"x": (0.0, 1.0)}, metric="loss", mode="min")
    one.suggest("a")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        one.on_trial_complete("a", {"loss": float("nan")})
    assert one._optimizer.told.is_success.tolist() == [False]


def test_trials_without_a_report_are_not_asked_for_the_metric(searcher):
    one = searcher("random", space={"x": (0.0, 1.0)}, metric="loss", mode="min")
    for name in "ab":
        one.suggest(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        one.on_trial_complete("a", {"pid": 7}, error=True)
        one.on_trial_complete("b")
    assert one._optimizer.told.is_success.tolist() == [False] * 2


def ended_out_of_order(searcher, method):
    """A search of four trials at a time, of which any may end next; two are still running."""
    one = searcher(method, space={"x": (0.0, 1.0), "y": (0.0, 1.0)}, metric="loss", mode="min")
    rng, running = np.random.default_rng(0), {}
    for number in range(10):
        running[f"t{number}"] = one.suggest(f"t{number}")
        if len(running) == 4:
            name = list(running)[rng.integers(4)]
            config = running.pop(name)
            one.on_trial_complete(name, {"loss": (config["x"] - 0.3) ** 2 + config["y"]})
    one.on_trial_complete(running.popitem()[0], error=True)
    return one


def test_a_restored_search_is_told_in_the_order_of_the_ends(searcher, tmp_path):
    one = ended_out_of_order(searcher, "gp")
    one.save(str(tmp_path / "state"))
    other = searcher("gp", space={"x": (0.0, 1.0), "y": (0.0, 1.0)}, metric="loss", mode="min")
    other.restore(str(tmp_path / "state"))
    assert other._optimizer.told.configs == one._optimizer.told.configs
    for name in ("a", "b"):
        assert other.suggest(name) == one.suggest(name)


def test_a_state_without_the_order_of_the_ends_is_told_in_that_of_the_suggestions(
    searcher, tmp_path
):
    ended_out_of_order(searcher, "random").save(str(tmp_path / "state"))
    state = json.loads((tmp_path / "state").read_text())
    del state["ended"]
    (tmp_path / "state").write_text(json.dumps(state))
    other = searcher("random", space={"x": (0.0, 1.0), "y": (0.0, 1.0)}, metric="loss", mode="min")
    other.restore(str(tmp_path / "state"))
    suggested = [config for _, config, ended, _ in state["trials"] if ended]
    assert other._optimizer.told.configs.dicts() == suggested


@pytest.mark.parametrize("ended", [["t0"], ["nobody"], 3, [1]])
def test_a_state_whose_order_of_the_ends_is_another_is_refused(searcher, tmp_path, ended):
    one = ended_out_of_order(searcher, "random")
    one.save(str(tmp_path / "state"))
    state = json.loads((tmp_path / "state").read_text())
    (tmp_path / "state").write_text(json.dumps(state | {"ended": ended}))
    with refuses("other-search", kind=ArtifactError):
        one.restore(str(tmp_path / "state"))
