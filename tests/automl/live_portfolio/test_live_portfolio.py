"""Portfolios built live: pairs in a study, resumed, seeded, failed, and kept as experience."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune.automl.live_portfolio import api
from foretune.automl.live_portfolio.evaluators import PairFunction, TablePairEvaluator
from foretune.automl.live_portfolio.pairs import PairSpace
from foretune.automl.live_portfolio.run import LiveBuild
from foretune.automl.live_portfolio.search import PairChooser, PairOptimizer
from foretune.automl.live_portfolio.table_tasks import read_tasks
from foretune.automl.spaces import load_shipped_space
from foretune.errors import UsageError
from foretune.experience import Experience, Metric, Status
from foretune.methods.zero_shot.build import BUILDERS, Recipe
from foretune.methods.zero_shot.live_jobs import LiveJobs
from foretune.numerics.greedy import mean
from foretune.run.executor import Limits
from foretune.search import Told
from foretune.space import Space
from foretune.tables import Task
from tests.inline_site import InlineSite
from tests.refusals import refuses

SPACE = Space.of({"x": (0.0, 1.0), "kind": ["left", "right"]})
TASKS = {"a": 0.2, "b": 0.25, "c": 0.8, "d": 0.75, "e": 0.3}
CALLS: list[tuple[str, float]] = []


def error(config, centre):
    CALLS.append((config["kind"], centre))
    return 0.1 + abs(config["x"] - centre) + 0.3 * ((config["kind"] == "right") != (centre > 0.5))


def fail_on_c(config, centre):
    if centre == TASKS["c"]:
        raise ValueError("c is broken")
    return error(config, centre)


def report_steps(config, centre, trial):
    for step in (1, 2):
        trial.report(step, 1.0 / step)
    return error(config, centre)


def build_of(function=error, *, tasks=TASKS, builder="obo", budget=30, store=None, **other):
    pairs = PairSpace(SPACE, list(tasks))
    recipe = Recipe(2, builder, budget, seed=other.pop("seed", 0))
    return LiveBuild(
        space=pairs,
        metric=Metric("loss"),
        evaluator=PairFunction(function, tasks, pairs.task_name),
        recipe=recipe,
        candidates=40,
        store=store,
        site=InlineSite(),
        **other,
    )


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@pytest.mark.parametrize("builder", BUILDERS)
def test_each_builder_spends_its_budget_and_finds_what_complements(builder: str) -> None:
    done = build_of(builder=builder, budget=40).run()
    assert done.ending == "trials"
    assert len(done.trials) == len(CALLS) == 40
    assert {trial.chosen_by for trial in done.trials} == {builder}
    assert done.portfolio is not None
    if builder in ("obo", "naive"):  # the others are coarse at so small a budget
        assert {config["kind"] for config in done.portfolio.configs} == {"left", "right"}
    assert (done.portfolio.jobs, done.portfolio.normalisation) == (40, "red")
    assert done.experience is not None
    assert len(done.experience) == 40
    pairs = {(t.config["task"], t.config["x"], t.config["kind"]) for t in done.trials}
    assert len(pairs) == 40


def test_the_same_build_goes_on_from_its_journal(tmp_path: Path) -> None:
    store = str(tmp_path / "journal.db")
    first = build_of(store=store, builder="mf", budget=12, experience=tmp_path / "e.parquet").run()
    assert len(CALLS) == 12
    again = build_of(store=store, builder="mf", budget=20, experience=tmp_path / "e.parquet").run()
    assert len(CALLS) == 20
    assert again.trials[:12] == first.trials
    assert len(Experience.open(tmp_path / "e.parquet")) == 20
    other = build_of(store=store, builder="mf", budget=20).run()  # nothing is left to run
    assert len(CALLS) == 20
    assert other.portfolio == again.portfolio


def test_a_failure_has_its_reason_and_costs_one_evaluation() -> None:
    done = build_of(fail_on_c, builder="naive", budget=20).run()
    failed = [trial for trial in done.trials if trial.status is Status.FAILED]
    assert len(failed) == 4
    assert {trial.reason for trial in failed} == {"ValueError: c is broken"}
    assert done.portfolio is not None


def test_curves_are_kept_where_steps_are_reported() -> None:
    done = build_of(report_steps, budget=6).run()
    assert done.experience is not None
    assert done.experience.curves is not None
    assert done.experience.curves.steps.tolist()[:2] == [1.0, 2.0]


def test_without_a_success_there_is_no_portfolio() -> None:
    done = build_of(fail_on_c, tasks={"c": TASKS["c"], "c2": TASKS["c"]}, budget=4).run()
    assert (done.portfolio, done.experience) == (None, None)
    assert len(done.trials) == 4


def test_past_pairs_of_the_same_tasks_cost_nothing_and_lead() -> None:
    past = build_of(builder="naive", budget=50).run().experience
    CALLS.clear()
    seeded = build_of(builder="naive", budget=10, past=past, seed=5).run()
    assert seeded.free == 50
    assert len(CALLS) == 10
    assert seeded.portfolio is not None
    known = set(map(str, past.configs.dicts()))
    tried = {str({n: v for n, v in t.config.items() if n != "task"}) for t in seeded.trials}
    assert not tried & known  # what is known is not evaluated again
    elsewhere = build_of(tasks={"y": 0.2, "z": 0.8}, budget=4, past=past, builder="mf").run()
    first = [t.config["x"] for t in elsewhere.trials]
    assert elsewhere.free == 0
    assert set(first[:2]) <= {config["x"] for config in past.configs.dicts()}


FIXED = {0: (0.10, 0.10, 0.90), 1: (0.30, 0.30, 0.30), 2: (0.22, 0.22, 0.60)}


def look_up(config, place):
    return FIXED[config["n"]][place]


def fixed_build(**options):
    """A build in which each option of the recipe changes the first pick, see `test_recipe`."""
    tasks = {"a": 0, "b": 1, "c": 2}
    pairs = PairSpace(Space.of({"n": (0, 2)}), list(tasks))
    return LiveBuild(
        space=pairs,
        metric=Metric("loss"),
        evaluator=PairFunction(look_up, tasks, pairs.task_name),
        recipe=Recipe(1, "naive", 9, **options),
        candidates=40,
        site=InlineSite(),
    )


def test_the_normalisation_and_the_aggregate_decide() -> None:
    found = {
        (aggregate, normalisation): fixed_build(aggregate=aggregate, normalisation=normalisation)
        .run()
        .portfolio
        for aggregate, normalisation in (("mean", "none"), ("median", "none"), ("mean", "rank"))
    }
    picks = {how: None if each is None else each.configs[0]["n"] for how, each in found.items()}
    assert picks == {("mean", "none"): 1, ("median", "none"): 0, ("mean", "rank"): 0}
    assert [each.normalisation for each in found.values() if each] == ["none", "none", "rank"]
    assert [each.aggregate for each in found.values() if each] == ["mean", "median", "mean"]


def test_the_seed_decides_which_pairs_are_run() -> None:
    orders = []
    for seed in (0, 1):
        jobs, builder = replace(
            build_of(builder="mf"), recipe=Recipe(2, "mf", 30, seed=seed)
        )._prepare()
        assert jobs.budget == 30
        orders.append(tuple(builder.order))
    assert orders[0] != orders[1]


def test_as_many_workers_as_asked_for_are_started() -> None:
    asked = []

    class NotedSite(InlineSite):
        def pool(self, function, *, workers, limits):
            asked.append((workers, limits))
            return super().pool(function, workers=workers, limits=limits)

    limits = Limits(5.0, None, 2**30)
    replace(build_of(builder="mf", budget=2), site=NotedSite(), workers=7, limits=limits).run()
    assert asked == [(7, limits)]


def test_losses_are_normalised_as_they_come() -> None:
    jobs = LiveJobs(2, SPACE.sample(3, seed=0), is_maximised=True)
    jobs.finish(np.array([0, 0]), np.array([0, 1]), np.array([-0.9, -0.8]))
    # Accuracies of 0.9 and 0.8 are errors of 0.1 and 0.2, and the reference is their mean.
    np.testing.assert_allclose(jobs.losses[0, :2], [-1 / 3, 0.25], rtol=1e-5)
    assert jobs.normalisation == "red"
    jobs.finish(np.array([1]), np.array([2]), np.array([-7.0]))
    assert jobs.normalisation == "rank"
    np.testing.assert_allclose(jobs.losses[0, :2], [0.0, 0.5])


def test_pending_pairs_are_not_chosen_again_and_are_given_back() -> None:
    pairs = PairSpace(SPACE, list(TASKS))
    jobs = LiveJobs(5, SPACE.sample(20, seed=1), budget=100)
    chooser = PairChooser(pairs, jobs, BUILDERS["obo"](jobs, 2, mean, seed=0), "obo")
    optimizer = PairOptimizer(chooser, "loss", seed=0)
    asked = optimizer.ask(8)
    assert len({str(each.config) for each in asked}) == 8
    optimizer.tell([Told(0.5, id=asked[0].id), Told(float("nan"), id=asked[1].id)])
    optimizer.withdraw([asked[2].id])
    [again] = optimizer.ask()
    assert jobs.used == 2
    assert jobs.pending_count == 5  # the new one is noted at the next look
    assert again.config not in [asked[n].config for n in (0, 1, 3, 4, 5, 6, 7)]


def test_a_space_may_have_a_hyperparameter_called_task() -> None:
    pairs = PairSpace(Space.of({"task": [1, 2], "x": (0.0, 1.0)}), ["b", "a"])
    assert pairs.task_name == "task_"
    config = {"task": 2, "x": 0.5}
    encoded = pairs.pairs.encode([pairs.join(0, config), pairs.join(1, config)])
    tasks, configs = pairs.read(encoded)
    assert tasks.tolist() == [0, 1]
    assert configs.dicts() == [config, config]
    assert pairs.split(pairs.join(1, config)) == ("a", config)


# Tables


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, target in (("one", "label"), ("two", "class"), ("three", "class")):
        x = rng.normal(size=(60, 2))
        rows = [f"{a},{b},{'yes' if a > 0 else 'no'}" for a, b in x]
        (folder / f"{name}.csv").write_text("\n".join([f"p,q,{target}", *rows]))
    (folder / "index.csv").write_text(
        "name,kind,target\none,classification,label\ntwo,classification,class\n"
        "three,regression,class\nfour,classification,class\n"
    )
    return folder


def test_an_index_names_tables_and_their_targets(tables: Path, tmp_path: Path) -> None:
    options = {"kept": tmp_path / "kept", "most_rows": 50, "seed": 0}
    found = read_tasks(tables, "index.csv", Task.CLASSIFICATION, **options)
    assert [each.name for each in found] == ["one", "two"]
    assert found == read_tasks(tables, "index.csv", Task.CLASSIFICATION, **options)
    assert "rows" in " ".join(found[0].meta_features)


@pytest.mark.parametrize(
    ("target", "rule"),
    [("label", "unusable-table"), ("none.csv", "no-index"), ("one.csv", "index-columns")],
)
def test_tables_that_cannot_be_tasks_are_refused(tables, tmp_path, target, rule) -> None:
    with refuses(rule, kind=UsageError):
        read_tasks(tables, target, Task.CLASSIFICATION, kept=tmp_path, most_rows=50, seed=0)


def test_tables_are_evaluated_with_a_shipped_space(tables: Path, tmp_path: Path) -> None:
    build = api.table_build(
        load_shipped_space("cash"),
        tables,
        "index.csv",
        only=["knn", "gaussian_nb"],
        kept=tmp_path / "kept",
        recipe=Recipe(1, "naive", 4),
    )
    assert isinstance(build.evaluator, TablePairEvaluator)
    done = replace(build, site=InlineSite(), candidates=10).run()
    assert len(done.trials) == 4
    assert done.experience is not None
    assert done.experience.metrics[0].name == "accuracy"
    assert set(done.experience.meta_features) == {"one", "two"}
    assert build.settings["tables"].keys() == {"one", "two"}


@pytest.mark.parametrize(
    ("text", "rule"),
    [("{", "tasks-not-json"), ("[]", "tasks-not-names"), ('["a", "a"]', "tasks-not-names"),
     ("3", "tasks-not-names")],
)  # fmt: skip
def test_lists_of_tasks_that_are_none_are_refused(tmp_path, text, rule) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with refuses(rule, kind=UsageError):
        api.read_task_list(path)


def test_a_list_of_tasks_may_say_what_the_function_gets(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(TASKS))
    assert api.read_task_list(path) == TASKS
    path.write_text('["a", "b"]')
    assert api.read_task_list(path) == {"a": "a", "b": "b"}


def test_one_task_is_refused() -> None:
    with refuses("at-least-two-tasks", kind=UsageError):
        api.build_portfolio(error, ["a"], SPACE)
