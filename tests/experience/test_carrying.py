import numpy as np
import pytest
from ConfigSpace import ForbiddenAndConjunction, ForbiddenEqualsClause, InCondition
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.errors import ExperienceError
from foretune.experience import Experience, Metric, Status
from foretune.experience.alignment.carry_over import carry_over, join_carried
from foretune.experience.alignment.restriction import restrict_experience
from foretune.space import Encoded, Space
from tests.experience.whole_and_part import PART, WHOLE
from tests.experience.whole_and_part import experience as of_whole
from tests.refusals import refuses

PAST = Space.of(
    {
        "lr": (1e-4, 1.0, "log"),
        "batch": {"ordinal": [32, 64, 128]},
        "act": ["relu", "tanh"],
        "momentum": (0.0, 0.99),
        "epochs": 10,
    }
)
CONFIGS = [
    {"lr": 1e-3, "batch": 32, "act": "relu", "momentum": 0.9, "epochs": 10},
    {"lr": 1e-2, "batch": 64, "act": "tanh", "momentum": 0.5, "epochs": 10},
    {"lr": 0.5, "batch": 128, "act": "relu", "momentum": 0.0, "epochs": 10},
]


def past(configs=CONFIGS, tasks=("one", "two")):
    n = len(configs)
    return Experience.build(
        PAST,
        [Metric("loss")],
        list(tasks),
        np.repeat(np.arange(len(tasks)), n),
        PAST.encode(configs),
        np.tile(np.arange(n), len(tasks)),
        np.arange(n * len(tasks), dtype=float),
        seconds=np.arange(n * len(tasks)) + 1.0,
        meta_features={tasks[0]: {"rows": 3.0}},
        starts={"one": {"first": [0, n - 1]}} if "one" in tasks else None,
    )


def rows(found):
    """The runs of the first task: their configurations and losses."""
    records = found.experience.task("one")
    return list(zip(records.configs.dicts(), records.losses[:, 0].tolist(), strict=True))


def searched(**changed):
    whole = {
        "lr": (1e-4, 1.0, "log"),
        "batch": {"ordinal": [32, 64, 128]},
        "act": ["relu", "tanh"],
        "momentum": (0.0, 0.99),
        "epochs": 10,
    }
    return Space.of({k: v for k, v in {**whole, **changed}.items() if v is not None})


def test_the_same_space_changes_nothing():
    given_ = past()
    found = carry_over(given_, PAST)
    assert found.experience is given_
    assert found.is_whole


def test_what_else_is_known_comes_along():
    found = carry_over(past(), searched(lr=(1e-4, 0.1, "log"))).experience
    assert found.tasks == ("one", "two")
    assert found.seconds.tolist() == [1.0, 2.0, 4.0, 5.0]
    assert found.meta_features == {"one": {"rows": 3.0}}
    assert found.starts["one"] == {"first": (0,)}
    assert found.task("two").losses[:, 0].tolist() == [3.0, 4.0]


def test_values_outside_of_a_range_leave_their_runs_out_and_are_counted():
    found = carry_over(past(), searched(lr=(5e-3, 0.1, "log")))
    assert [loss for _, loss in rows(found)] == [1.0]
    assert found.outside == {"lr": 4}
    assert (found.runs, found.tasks) == (6, 2)
    assert not found.is_whole
    assert found.describe() == (
        "past runs are of another space: 2 of 6 (of 2 of 2 tasks) are used; 4 lie outside of 'lr'"
    )


def test_the_reason_that_drops_most_runs_comes_first():
    found = carry_over(past(), searched(act=["relu"], momentum=(0.6, 0.99), lr=(1e-4, 0.1)))
    assert found.outside == {"act": 2, "momentum": 4, "lr": 2}
    assert "; 4 lie outside of 'momentum', 2 lie outside of" in found.describe()


def test_a_wider_range_and_more_choices_lose_nothing():
    found = carry_over(past(), searched(lr=(1e-6, 10.0), act=["gelu", "tanh", "relu"]))
    assert found.is_whole
    assert [config for config, _ in rows(found)] == CONFIGS


def test_a_choice_that_is_gone_leaves_its_runs_out():
    found = carry_over(past(), searched(act=["relu", "gelu"]))
    assert [loss for _, loss in rows(found)] == [0.0, 2.0]
    assert found.outside == {"act": 2}


def test_a_hyperparameter_that_is_gone_is_forgotten():
    found = carry_over(past(), searched(momentum=None, epochs=None))
    assert [config for config, _ in rows(found)] == [
        {"lr": each["lr"], "batch": each["batch"], "act": each["act"]} for each in CONFIGS
    ]
    assert found.gone == ("momentum",)  # what never changed was not chosen
    assert not found.is_whole
    assert "their values of 'momentum' are ignored" in found.describe()


def test_runs_that_differed_only_in_what_is_gone_are_repetitions():
    two = [CONFIGS[0], {**CONFIGS[0], "momentum": 0.1}]
    found = carry_over(past(two), searched(momentum=None)).experience
    assert len(found.configs) == 1
    assert found.task("one").losses[:, 0].tolist() == [0.0, 1.0]


def many_runs(n=200):
    return past([{**CONFIGS[0], "lr": lr} for lr in np.geomspace(1e-4, 1.0, n).tolist()])


def test_a_missing_value_is_the_default_unless_something_else_is_said():
    space = searched(dropout=(0.0, 1.0), norm=["none", "batch"])
    found = carry_over(many_runs(), space)
    assert set(found.unknown) == {"norm", "dropout"}
    assert len(found.experience) == 400
    default = {(each["dropout"], each["norm"]) for each in found.experience.configs.dicts()}
    assert default == {(0.5, "none")}
    assert carry_over(many_runs(), space, missing="default").experience.configs == (
        found.experience.configs
    )


def test_a_missing_value_can_be_drawn_from_the_whole_range():
    space = searched(dropout=(0.0, 1.0), norm=["none", "batch"])
    values = carry_over(many_runs(), space, missing="marginalise").experience.configs.dicts()
    dropout = np.array([each["dropout"] for each in values])
    assert 0.4 < dropout.mean() < 0.6
    assert dropout.min() < 0.05 < 0.95 < dropout.max()
    assert {each["norm"] for each in values} == {"none", "batch"}


@pytest.mark.parametrize("missing", ["default", "marginalise", "drop"])
def test_an_assumed_value_is_not_missing(missing):
    space = searched(dropout=(0.0, 1.0), norm=["none", "batch"], one=["only"])
    assumed = {"dropout": 0, "norm": "batch"}
    said = carry_over(many_runs(), space, assumed=assumed, missing=missing)
    assert said.unknown == ()
    assert len(said.experience) == 400
    assert {
        (each["dropout"], each["norm"], each["one"]) for each in said.experience.configs.dicts()
    } == {(0.0, "batch", "only")}
    known = many_runs().in_space(space, assumed=assumed, missing=missing)
    assert known.configs == said.experience.configs


def test_runs_that_lack_a_value_can_be_left_out():
    """Of two tasks, one has recorded the momentum and one has not."""
    lesser = past(tasks=["one"]).in_space(searched(momentum=None))
    both = lesser.space.union(PAST)
    values = np.vstack([_without(both, CONFIGS, "momentum"), both.encode(CONFIGS).values])
    configs = Encoded(both, values)
    index = np.arange(6)
    known = Experience.build(
        both, [Metric("loss")], ["one", "two"], index // 3, configs, index, index * 1.0
    )
    found = carry_over(known, PAST, missing="drop")
    assert found.experience.tasks == ("two",)
    assert found.experience.configs.dicts() == CONFIGS
    assert (found.incomplete, found.outside) == ({"momentum": 3}, {})
    assert "3 have no value of 'momentum'" in found.describe()
    # In the middle of the range, or one of those that the other task has recorded.
    default = carry_over(known, PAST).experience.task("one").configs.dicts()
    assert [each["momentum"] for each in default] == [0.495] * 3
    drawn = carry_over(known, PAST, missing="marginalise").experience.task("one").configs.dicts()
    assert {each["momentum"] for each in drawn} <= {0.9, 0.5, 0.0}


def _without(space, configs, name):
    values = np.array(space.encode(configs).values)
    values[:, space.names.index(name)] = np.nan
    return values


def test_a_gap_in_the_own_space_is_filled_as_well():
    values = PAST.encode(CONFIGS).values.copy()
    values[0, PAST.names.index("momentum")] = np.nan
    known = Experience.build(
        PAST, [Metric("loss")], ["one"], [0] * 3, Encoded(PAST, values), range(3), range(3)
    )
    found = carry_over(known, PAST).experience.configs.dicts()
    assert [each["momentum"] for each in found] == [0.495, 0.5, 0.0]
    assert carry_over(known, PAST, missing="drop").experience.configs.dicts() == CONFIGS[1:]


def test_a_value_missing_in_every_run_cannot_drop_runs():
    with refuses("no-run-inside", field="dropout", value=6):
        carry_over(past(), searched(dropout=(0.0, 1.0)), missing="drop")
    with refuses("unknown-missing-policy", field="missing", value="mean"):
        past().in_space(PAST, missing="mean")


def test_unknown_values_are_equal_on_all_tasks_and_at_all_times():
    space = searched(dropout=(0.0, 1.0))
    first, again = (carry_over(past(), space, missing="marginalise").experience for _ in range(2))
    assert first.task("one").configs.dicts() == first.task("two").configs.dicts()
    assert first.configs.dicts() == again.configs.dicts()


def test_unknown_values_depend_on_the_configuration_and_not_on_its_row():
    """Past studies that began with their best would else agree on what is good of it."""
    configs = [{**CONFIGS[0], "lr": lr} for lr in np.geomspace(1e-4, 1.0, 40).tolist()]
    space = searched(dropout=(0.0, 1.0), noise=(0.0, 1.0))

    def drawn(given_, name="dropout"):
        carried = carry_over(past(given_), space, missing="marginalise").experience
        found = carried.task("one").configs.dicts()
        return [each[name] for each in found]

    assert drawn(configs[::-1]) == drawn(configs)[::-1]
    others = [{**each, "momentum": 0.1} for each in configs]
    for one, two in [
        (drawn(configs), drawn(others)),
        (drawn(configs), drawn(configs, "noise")),
    ]:
        assert not set(one) & set(two)
        assert abs(np.corrcoef(one, two)[0, 1]) < 0.5


@pytest.mark.parametrize(
    ("name", "now", "values"),
    [
        ("batch", (16, 256), [32, 64, 128]),  # a grid that became a range
        ("batch", (16, 100, "log"), [32, 64]),
        ("batch", {"ordinal": [30, 60, 90, 120, 150]}, [30, 60, 120]),  # another grid
        ("batch", [64, 128], [64, 128]),
        ("momentum", {"ordinal": [0.0, 0.4, 0.9]}, [0.9, 0.4, 0.0]),
        ("momentum", (0, 1), [1, 0, 0]),  # whole numbers: 0.5 becomes the even one
        ("momentum", 0.9, [0.9, 0.9, 0.9]),  # a setting now
        ("act", "tanh", ["tanh"]),
        ("epochs", (1, 20), [10, 10, 10]),  # a setting that is searched now
        ("epochs", (1, 9), []),
        ("epochs", 20, [20, 20, 20]),  # a setting that is another now
    ],
)
def test_values_are_taken_over_between_kinds(name, now, values):
    space = searched(**{name: now})
    if not values:
        with refuses("no-run-inside", field=name, value=6):
            carry_over(past(), space)
        return
    assert [config[name] for config, _ in rows(carry_over(past(), space))] == values


def test_numbers_beyond_a_bound_by_rounding_alone_are_at_it():
    [space, beyond] = [searched(momentum=(0.0, high)) for high in (0.9 - 1e-10, 0.9 - 1e-6)]
    assert rows(carry_over(past(), space))[0][0]["momentum"] == 0.9 - 1e-10
    assert carry_over(past(), beyond).outside == {"momentum": 2}


def of_column(space, name, values):
    configs = space.encode([{name: value} for value in values])
    n = len(values)
    return Experience.build(space, [Metric("loss")], ["one"], [0] * n, configs, range(n), range(n))


@pytest.mark.parametrize(
    ("before", "now", "outside"),
    [
        ((1e-10, 10.0, "log"), (1e-8, 10.0, "log"), 2),  # 1e-9 of the range is 1e-8
        ((1e-10, 10.0, "log"), (1e-8, 10.0), 2),
        ((1e-10, 10.0), (1e-8, 10.0, "log"), 2),
        ((1e-10, 10.0, "log"), {"ordinal": [1e-8, 10.0]}, 2),
        ((1e-10, 10.0, "log"), (0.0, 10.0), 0),
    ],
)
def test_on_log_scales_nothing_beyond_rounding_is_clipped(before, now, outside):
    known = of_column(Space.of({"decay": before}), "decay", [1e-9, 5e-9, 1e-8, 1e-3, 10.0])
    found = carry_over(known, Space.of({"decay": now}))
    assert found.outside.get("decay", 0) == outside
    if not isinstance(now, dict):
        kept = [config["decay"] for config in found.experience.configs.dicts()]
        assert kept == [1e-9, 5e-9, 1e-8, 1e-3, 10.0][outside:]
    rounded = of_column(Space.of({"decay": before}), "decay", [1e-8 * (1 - 1e-12), 1.0])
    assert carry_over(rounded, Space.of({"decay": now})).outside == {}


@pytest.mark.parametrize(("before", "rounded"), [((1e-4, 1.0, "log"), 1e-2), ((1e-4, 1.0), 1e-4)])
def test_the_nearest_of_a_list_is_measured_on_the_scale_that_was_searched(before, rounded):
    known = of_column(Space.of({"x": before}), "x", [4e-3, 1.0])
    found = carry_over(known, Space.of({"x": {"ordinal": [1e-4, 1e-2, 1.0]}}))
    assert found.experience.configs.dicts()[0] == {"x": rounded}


@pytest.mark.parametrize("now", [[0.3, 0.7], [0.3, "auto"], [0.3, 0.7, 10**400]])
def test_a_range_that_became_a_list_keeps_its_values_up_to_rounding(now):
    known = of_column(Space.of({"x": (0.0, 1.0)}), "x", [0.1 + 0.2, 0.3 + 1e-6, 0.0])
    found = carry_over(known, Space.of({"x": now}))
    assert found.experience.configs.dicts() == [{"x": 0.3}]
    assert found.outside == {"x": 2}


def test_large_numbers_have_large_rounding_errors():
    before, now = Space.of({"n": [1e9, 2e9]}), Space.of({"n": [1e9 + 0.5, 2e9 + 9.0, 3e9]})
    configs = before.encode([{"n": 1e9}, {"n": 2e9}])
    runs = Experience.build(before, [Metric("loss")], ["one"], [0, 0], configs, [0, 1], [1, 2])
    assert carry_over(runs, now).experience.configs.dicts() == [{"n": 1e9 + 0.5}]


def test_choices_beyond_any_float_are_choices_like_others():
    known = of_column(Space.of({"x": [1, 10**400]}), "x", [1, 10**400])
    for now in ([10**400, 1, 2], {"ordinal": [1, 2, 10**400]}, (0, 5), (0.0, 5.0)):
        found = carry_over(known, Space.of({"x": now})).experience.configs.dicts()
        assert [each["x"] for each in found] == [1, 10**400][: len(found)]


def test_truth_values_are_no_numbers():
    known = of_column(Space.of({"x": [True, False]}), "x", [True, False])
    with refuses("no-run-inside", field="x", value=2):
        carry_over(known, Space.of({"x": (0, 1)}))
    with refuses("no-run-inside", field="x", value=2):
        carry_over(known, Space.of({"x": [0, 1]}))


def test_recorded_values_are_not_replaced_by_assumptions():
    space = searched(dropout=(0.0, 1.0))
    found = carry_over(past(), space, assumed={"momentum": 0.25, "dropout": 0.5})
    assert [config["momentum"] for config, _ in rows(found)] == [0.9, 0.5, 0.0]
    assert found.in_vain == ("momentum",)
    assert carry_over(past(), PAST, assumed={"momentum": 0.25}).in_vain == ("momentum",)
    outside = carry_over(past(), searched(lr=(5e-3, 0.1, "log")), assumed={"lr": 0.05})
    assert outside.in_vain == ("lr",)  # runs with other values have recorded them
    assert join_carried([found, carry_over(past(), space)]).in_vain == ()


def test_inactive_values_contradict_nothing():
    def made(rate):
        return Space.of({"model": ["a", "b"], "rate": rate, "x": (0.0, 1.0)}).config_space

    before = Space.of(made((0.0, 1.0)))
    now = made((0.0, 0.5))
    now.add(InCondition(now["rate"], now["model"], ["a"]))
    configs = [{"model": each, "rate": 0.9, "x": 0.5} for each in "ab"]
    known = Experience.build(
        before, [Metric("loss")], ["one"], [0, 0], before.encode(configs), [0, 1], [1.0, 2.0]
    )
    found = carry_over(known, Space.of(now))
    assert found.experience.configs.dicts() == [{"model": "b", "x": 0.5}]
    assert found.outside == {"rate": 1}


def test_past_runs_with_unknown_values_are_incomplete():
    found = carry_over(past(), searched(dropout=(0.0, 1.0)))
    assert len(found.experience) == found.runs
    assert not found.is_whole


def test_a_space_may_be_written_in_any_way_and_assumed_values_be_of_numpy():
    now = {"lr": (1e-4, 1.0, "log"), "dropout": (0.0, 1.0), "layers": (1, 5), "norm": ["a", "b"]}
    given_ = {"dropout": np.float32(0.5), "layers": np.int64(2), "norm": np.str_("b")}
    assert past().in_space(now, assumed=given_).configs.dicts()[0] == {
        "lr": 1e-3, "dropout": 0.5, "layers": 2, "norm": "b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "now", "other"),
    [
        ("epochs", 20, True),
        ("epochs", [20], True),
        ("epochs", [10], False),
        ("epochs", 10.0, False),
        ("batch", 64, True),  # numbers that became a setting
        ("batch", [256], True),
        ("momentum", 0.25, True),
        ("momentum", [0.25], True),
    ],
)
def test_a_setting_that_is_another_now_is_said_and_leaves_nothing_out(name, now, other):
    found = carry_over(past(), searched(**{name: now}))
    assert len(rows(found)) == 3
    assert found.other == ((name,) if other else ())
    assert found.is_whole is not other
    assert (f"they had another value of '{name}'" in found.describe()) is other
    assert join_carried([found]).other == found.other


def test_values_of_dropped_runs_are_not_mentioned():
    settings_of = Space.of({"lr": (1e-4, 1.0, "log"), "epochs": (1, 100)})
    configs = settings_of.encode([{"lr": 1e-3, "epochs": 10}, {"lr": 0.5, "epochs": 50}])
    runs = Experience.build(settings_of, [Metric("loss")], ["one"], [0, 0], configs, [0, 1], [1, 2])
    for highest, other in ((1.0, ("epochs",)), (0.1, ())):
        now = Space.of({"lr": (1e-4, highest, "log"), "epochs": 10})
        assert carry_over(runs, now).other == other


def test_a_new_setting_needs_no_recorded_value():
    assert carry_over(past(), searched(norm=["batch"], seed=3)).is_whole


def test_a_choice_that_became_a_setting_leaves_the_other_choices_out():
    for now in ("tanh", ["tanh"]):
        found = carry_over(past(), searched(act=now))
        assert found.outside == {"act": 4}
        assert found.other == ()


def test_algorithms_come_and_go():
    now = Space.of(
        {
            "model": {
                "forest": {"trees": (10, 30), "share": (0.1, 1.0), "depth": (1, 9)},
                "naive": {},
                "boosting": {"rate": (0.01, 1.0, "log")},
            },
            "scale": ["none", "standard"],
        }
    )
    found = carry_over(of_whole(), now)
    assert found.outside == {"model": 2, "model:forest:trees": 2}
    assert found.experience.configs.dicts() == [{"model": "naive", "scale": "none"}]
    assert found.unknown == ("model:boosting:rate", "model:forest:depth")
    assert found.gone == ("model:svm:C", "model:svm:kernel")


def test_a_hyperparameter_that_is_active_more_often_now_lacks_values():
    def made(of):
        space = Space.of({"kernel": ["a", "b", "c"], "degree": (0.0, 10.0)}).config_space
        space.add(InCondition(space["degree"], space["kernel"], of))
        return Space.of(space)

    before, now = made(["a"]), made(["a", "b"])
    configs = [{"kernel": "a", "degree": d} for d in (1.0, 2.0, 9.0)] + [{"kernel": "b"}]
    known = Experience.build(
        before, [Metric("loss")], ["one"], [0] * 4, before.encode(configs), range(4), range(4)
    )
    found = carry_over(known, now).experience
    assert found.configs.dicts()[3] == {"kernel": "b", "degree": 5.0}
    assert len(found) == 4
    [*_, drawn] = carry_over(known, now, missing="marginalise").experience.configs.dicts()
    assert drawn["degree"] in (1.0, 2.0, 9.0)
    assert len(carry_over(known, now, missing="drop").experience) == 3


def test_forbidden_combinations_are_left_out():
    space = searched().config_space
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(space["act"], "tanh"), ForbiddenEqualsClause(space["batch"], 64)
        )
    )
    found = carry_over(past(), Space.of(space))
    assert [loss for _, loss in rows(found)] == [0.0, 2.0]
    assert found.describe().endswith("4 of 6 (of 2 of 2 tasks) are used; 2 are forbidden there")
    with refuses("no-run-inside", field="", value=2):
        carry_over(past(CONFIGS[1:2]), Space.of(space))


def test_drawn_values_avoid_forbidden_combinations():
    many = [{**CONFIGS[0], "lr": lr} for lr in np.geomspace(1e-4, 1.0, 100).tolist()]
    space = searched(mode=["c", "a", "b"], kind=["u", "v"]).config_space
    for act, mode in [("relu", "a"), ("relu", "b"), *(("tanh", each) for each in "abc")]:
        space.add(
            ForbiddenAndConjunction(
                ForbiddenEqualsClause(space["act"], act), ForbiddenEqualsClause(space["mode"], mode)
            )
        )
    found = carry_over(past([*many, CONFIGS[1]]), Space.of(space), missing="marginalise")
    drawn = [config for config, _ in rows(found)]
    assert {config["mode"] for config in drawn} == {"c"}
    assert len(drawn) > 90  # two thirds would be left out if it were drawn once
    assert 0.3 < np.mean([config["kind"] == "u" for config in drawn]) < 0.7
    assert found.forbidden == 2 * (101 - len(drawn))  # whatever is drawn, tanh stays forbidden


def test_runs_that_have_all_failed_inside_are_refused():
    tried = Experience.build(
        PAST, [Metric("loss")], ["one"], [0, 0], PAST.encode(CONFIGS[:2]), [0, 1], [np.nan, 1.0],
        status=[Status.FAILED, Status.DONE],
    )  # fmt: skip
    with refuses("no-success-inside", value=1):
        carry_over(tried, searched(act=["relu", "gelu"]))


def test_runs_that_measured_nothing_of_a_metric_inside_are_refused():
    runs = Experience.build(
        PAST,
        [Metric("loss"), Metric("size")],
        ["one"],
        [0, 0],
        PAST.encode([CONFIGS[0], CONFIGS[2]]),
        [0, 1],
        [[1.0, np.nan], [2.0, 3.0]],
    )
    assert len(carry_over(runs, searched(lr=(1e-4, 0.9, "log"))).experience) == 2
    with refuses("no-success-inside", value=1):
        carry_over(runs, searched(lr=(1e-4, 0.1, "log")))


def test_tasks_of_which_nothing_is_left_are_left_out():
    one = past(CONFIGS[:1], tasks=["one"])
    other = past(CONFIGS[2:], tasks=["other"])
    found = carry_over(one.merge(other), searched(lr=(1e-4, 0.1)))
    assert found.experience.tasks == ("one",)
    assert "1 of 2 (of 1 of 2 tasks) are used" in found.describe()


def test_failed_runs_come_along():
    failed = Experience.build(
        PAST, [Metric("loss")], ["one"], [0, 0], PAST.encode(CONFIGS[:2]), [0, 1], [np.nan, 1.0],
        status=[Status.FAILED, Status.DONE],
    )  # fmt: skip
    found = carry_over(past().merge(failed), searched(momentum=None)).experience
    assert (found.status == Status.FAILED).sum() == 1


def test_several_experiences_speak_together():
    space = searched(lr=(1e-4, 0.1, "log"), dropout=(0.0, 1.0), norm=["a", "b"], act=None)
    now = Space.of({"lr": (1e-4, 0.1, "log"), "dropout": (0.0, 1.0)})
    other = Experience.build(
        now,
        [Metric("loss")],
        ["three"],
        [0],
        now.encode([{"lr": 0.01, "dropout": 0.5}]),
        [0],
        [9.0],
    )
    parts = [carry_over(past(tasks=[name]), space) for name in ("one", "two")]
    found = join_carried([*parts, carry_over(other, space)])
    assert found.experience.tasks == ("one", "two", "three")
    assert (len(found.experience), found.runs, found.tasks) == (5, 7, 3)
    assert found.outside == {"lr": 2}
    assert found.unknown == ("norm",)  # one of them knows of dropout
    assert found.gone == ("act",)
    alone = join_carried(parts[:1])
    assert alone.describe() == parts[0].describe()


@pytest.mark.parametrize(
    ("space", "assumed", "rule", "field"),
    [
        ({"x": (0, 1)}, {}, "no-shared-hyperparameter", ""),
        ({"lr": (2.0, 3.0)}, {}, "no-run-inside", "lr"),
        ({"lr": (0.0, 3.0)}, {"rl": 1}, "unknown-hyperparameter", "rl"),
        ({"lr": (0.0, 3.0), "d": (0, 5)}, {"d": 6}, "assumed-value-outside", "d"),
        ({"lr": (0.0, 3.0), "d": (0, 5)}, {"d": True}, "assumed-value-outside", "d"),
        ({"lr": (0.0, 3.0), "d": ["a"]}, {"d": "b"}, "assumed-value-outside", "d"),
    ],
)
def test_unfitting_values_are_refused(space, assumed, rule, field):
    with refuses(rule, field=field):
        carry_over(past(), Space.of(space), assumed=assumed)


def test_a_wrong_assumption_is_refused_in_the_same_space_too():
    with refuses("unknown-hyperparameter", field="x", value=1):
        carry_over(past(), PAST, assumed={"x": 1})


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_equal_hyperparameters_of_both_spaces_stay_exact(seed):
    """Wherever narrowing keeps a configuration, it is carried over just so."""
    configs = WHOLE.sample(8, seed=seed)
    known = Experience.build(
        WHOLE, [Metric("loss")], ["one"], [0] * 8, configs, range(8), np.arange(8.0)
    )
    try:
        exact = restrict_experience(known, PART)
    except ExperienceError:
        with refuses("no-run-inside", value=8):
            carry_over(known, PART)
        return
    found = carry_over(known, PART).experience
    assert found.configs.dicts() == exact.configs.dicts()
    assert found.values.tolist() == exact.values.tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_all_that_is_kept_is_legal_and_all_that_is_legal_is_kept(seed, low, high):
    low, high = sorted((low, high + 1.0))
    configs = PAST.sample(20, seed=seed)
    known = Experience.build(
        PAST, [Metric("loss")], ["one"], [0] * 20, configs, range(20), np.arange(20.0)
    )
    space = searched(momentum=(low, high), new=["a", "b"])
    inside = [c for c in configs.dicts() if low <= c["momentum"] <= high]
    if not inside:
        return
    found = carry_over(known, space).experience.configs.dicts()
    assert [{k: v for k, v in each.items() if k != "new"} for each in found] == inside
