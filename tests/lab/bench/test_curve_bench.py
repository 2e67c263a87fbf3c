"""`bench run --budget` and its report: costs worked out by hand, names, resuming, refusals."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from foretune.experience import Experience, Metric
from foretune.experience.curves import build_curves
from foretune.methods.contracts import Target
from foretune.methods.stopping import StepRange, make_policy
from foretune.search import METHODS, Design, Method, Optimizer, method
from foretune_lab.bench.curve_replay import (
    ROW,
    SPENT,
    CurveCosts,
    CurveRun,
    curve_task,
    play_on_curves,
    regret_at,
)
from foretune_lab.bench.curve_report import anytime_area, report_on_curves
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.entrants import find_entrant
from foretune_lab.bench.replay import replay
from foretune_lab.bench.report import report
from foretune_lab.bench.results import Results, read, save
from foretune_lab.bench.starts import seed_on_task
from tests.lab.bench.tables import CURVE_SPACE, LAST, Spy, table
from tests.lab.bench.tables import table_with_curves as past
from tests.refusals import refuses


def run(
    out: Path, experience: Experience, names: list[str], costs: CurveCosts, **options
) -> Results:
    settings = CurveSettings(costs, options.pop("first_step", None), options.pop("eta", 3.0))
    return replay(
        experience, names, curves=settings, seeds=options.pop("seeds", 1), out=out, **options
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results.parquet"


# What is paid


def test_complete_runs_cost_one_each(out: Path) -> None:
    made = run(out, past([[0.1, 0.2, 0.3]]), ["random"], CurveCosts(5))
    assert made.rows["cost"].tolist() == [1, 2, 3]
    assert made.rows["best"].min() == 0.1
    assert list(made.rows.columns) == ROW + SPENT
    pd.testing.assert_frame_equal(read(out).rows, made.rows)


# At step 3 all are equal. The third trial fills the level, so the first one, as the best of three,
# goes on from step 3 to step 9.
@pytest.mark.parametrize(
    ("costs", "paid"),
    [
        (CurveCosts(5), [3, 6, 9, 15]),
        (CurveCosts(5, resume_cost=1.5), [3, 6, 9, 16.5]),
        (CurveCosts(5, workers=2), [6, 7, 9, 15]),
        (CurveCosts(5, unit="seconds"), [3, 6, 9, 15]),
        (CurveCosts(0.5), [3, 6]),
    ],
)
def test_a_policy_pays_for_the_steps_that_it_allows(
    out: Path, costs: CurveCosts, paid: list[float]
) -> None:
    made = run(out, past([[0.1, 0.2, 0.3]]), ["asha"], costs, first_step=3.0)
    assert made.rows["cost"].tolist() == pytest.approx([each / LAST for each in paid])
    assert made.rows["value"].tolist()[:3] == [0.9] * min(3, len(paid))
    if len(paid) == 4:
        assert made.rows["value"].iloc[3] in (0.1, 0.2, 0.3)


def test_idle_workers_wake_when_there_is_something_to_do_again(out: Path) -> None:
    """Nine workers share nine trials. Three of them survive step 1, and run at the same time."""
    made = run(out, past([[0.1] * 9]), ["halving"], CurveCosts(9, workers=9), first_step=1.0)
    paid = [9] * 9 + [9 + 3 * 2] * 3 + [9 + 3 * 2 + 6]
    assert made.rows["cost"].tolist() == pytest.approx([each / LAST for each in paid])


def test_seconds_are_those_of_each_configuration(out: Path) -> None:
    """One step takes 1, 2 or 4 seconds; the median trial, 18 seconds, is a complete run."""
    costs = CurveCosts(9, unit="seconds")
    made = run(out, past([[0.1, 0.2, 0.3]], pace=[1.0, 2.0, 4.0]), ["random"], costs)
    assert sorted(np.diff(made.rows["cost"], prepend=0)) == pytest.approx([0.5, 1, 2])


def test_random_with_a_policy_is_the_same_as_a_direct_replay(out: Path) -> None:
    rng = np.random.default_rng(0)
    experience = past(rng.random((2, 30)).tolist())
    costs = CurveCosts(4, workers=2)
    made = run(out, experience, ["hyperband", "random+asha", "asha"], costs, seeds=2)
    for task in experience.tasks:
        recorded = curve_task(experience, task)
        for name, seed in ((name, seed) for name in ("hyperband", "asha") for seed in (0, 1)):
            chosen = method("random")
            tuner = Optimizer(
                Target(CURVE_SPACE, ("error",), recorded.configs),
                chosen,
                chosen.learn(None, seed=seed),
                seed=seed_on_task(seed, task),
                policy=make_policy(name, StepRange(1, LAST, 3)),
            )
            direct = play_on_curves(lambda of=tuner: of, recorded, costs, name, seed)
            for label in {"asha": ["asha", "random+asha"]}.get(name, [name]):
                is_run = (made.rows[["task", "method", "seed"]] == [task, label, seed]).all(axis=1)
                assert made.rows["cost"][is_run].tolist() == direct.cost
                assert made.rows["regret"][is_run].tolist() == direct.regret


@pytest.mark.parametrize("name", ["dyhpo", "dpl"])
def test_a_model_of_curves_decides_about_a_few_steps_at_a_time(out: Path, name: str) -> None:
    """Three trials of nine steps, three at a time: nine decisions make all of them complete."""
    made = run(out, past([[0.1, 0.2, 0.3]]), [name], CurveCosts(5), first_step=3.0)
    assert made.rows["cost"].tolist() == pytest.approx([n / 3 for n in range(1, 10)])
    assert sorted(made.rows["value"]) == [0.1, 0.2, 0.3] + [0.9] * 6
    assert made.rows["regret"].iloc[-1] == 0


# Names


def test_names_are_methods_policies_or_both() -> None:
    found = [find_entrant(name, on_curves=True) for name in ("gp", "asha", "gp+median")]
    assert find_entrant("dpl", on_curves=True).step_model == "dpl"
    assert [(of.method.name, of.policy) for of in found] == [
        ("gp", "none"),
        ("random", "asha"),
        ("gp", "median"),
    ]


@pytest.mark.parametrize(
    ("name", "rule", "value"),
    [
        ("asha+gp", "unknown-entrant", "asha+gp"),
        ("gp+", "unknown-entrant", "gp+"),
        ("+asha", "unknown-entrant", "+asha"),
        ("gqp", "unknown-entrant", "gqp"),
        ("gpp+asha", "unknown-method", "gpp"),
    ],
)
def test_other_names_are_refused(name: str, rule: str, value: str) -> None:
    with refuses(rule, value=value):
        find_entrant(name, on_curves=True)


def test_without_curves_a_policy_is_no_method(out: Path) -> None:
    with refuses("unknown-method"):
        replay(table(), ["asha"], trials=2, seeds=1, out=out)


# Learning, resuming, refusing


def test_own_curves_never_reach_the_learner(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    spy = Spy()
    entry = Method(
        "spy", "a spy", lambda: spy, design=Design("random", None), needs_experience=True
    )
    monkeypatch.setitem(METHODS, "spy", entry)
    run(out, past([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), ["spy+asha"], CurveCosts(1))
    assert [given.tasks for given, _ in spy.given] == [
        ("task1", "task2"),
        ("task0", "task2"),
        ("task0", "task1"),
    ]
    assert all(given.curves is not None for given, _ in spy.given)


class Interrupting:
    """A progress that presses Ctrl-C after some steps."""

    left = 2

    def start(self, what: str, total: int) -> None:
        pass

    def step(self, n: int = 1, note: str = "") -> None:
        self.left -= n
        if self.left == 0:
            raise KeyboardInterrupt

    def stop(self) -> None:
        pass


def without_seconds(results: Results) -> pd.DataFrame:
    return results.rows.drop(columns="suggest_seconds")


def test_an_interrupted_replay_goes_on(tmp_path: Path, out: Path) -> None:
    experience = past(np.random.default_rng(1).random((3, 9)).tolist())
    with pytest.raises(KeyboardInterrupt):
        run(out, experience, ["asha", "random"], CurveCosts(2), progress=Interrupting())
    assert not out.exists()
    with refuses("equal-settings", field="out"):
        run(out, experience, ["asha", "random"], CurveCosts(2), eta=4.0)
    resumed = run(out, experience, ["asha", "random"], CurveCosts(2))
    whole = run(tmp_path / "whole.parquet", experience, ["asha", "random"], CurveCosts(2))
    order = ["task", "method", "seed"]
    pd.testing.assert_frame_equal(
        without_seconds(resumed).sort_values(order, kind="stable", ignore_index=True),
        without_seconds(whole).sort_values(order, kind="stable", ignore_index=True),
    )


def test_results_are_extended_by_methods_with_equal_costs_only(out: Path) -> None:
    experience = past([[0.1, 0.2, 0.3]])
    first = run(out, experience, ["random"], CurveCosts(2))
    both = run(out, experience, ["random", "asha"], CurveCosts(2))
    assert len(both.runs) == 2
    pd.testing.assert_frame_equal(both.rows.query("method == 'random'"), first.rows)
    with refuses("equal-settings", field="out"):
        run(out, experience, ["median"], CurveCosts(2, workers=2))
    with refuses("equal-settings", field="out"):
        replay(experience, ["random"], trials=2, seeds=1, out=out)


def test_experience_without_curves_is_refused_before_anything_is_written(out: Path) -> None:
    with refuses("no-curves", field="task"):
        run(out, table().with_metrics(["error"]), ["asha"], CurveCosts(1))
    with refuses("one-objective", value="dyhpo"):
        run(out, two_objectives(), ["dyhpo"], CurveCosts(1), objectives=["error", "size"])
    with refuses("step-range"):
        run(out, past([[0.1, 0.2]]), ["asha"], CurveCosts(1), first_step=10.0)
    assert list(out.parent.iterdir()) == []


# Several objectives


def two_objectives() -> Experience:
    """One task with three configurations: (error, size) falls and grows with the steps."""
    x, ends = [0.0, 0.5, 1.0], [(0.1, 3.0), (0.2, 1.0), (0.4, 4.0)]
    steps = np.arange(1.0, 4.0)
    points = [[(error + 0.3 / step, size) for step in steps] for error, size in ends]
    for row, end in zip(points, ends, strict=True):
        row[-1] = end
    return Experience.build(
        CURVE_SPACE,
        [Metric("error"), Metric("size")],
        ["t"],
        np.zeros(3, dtype=int),
        CURVE_SPACE.from_columns({"x": x}, 3),
        np.arange(3),
        np.array(ends),
        curves=build_curves([3] * 3, np.tile(steps, 3), np.array(points).reshape(-1, 2)),
    )


def test_several_objectives_are_measured_by_the_hypervolume_that_is_missing(out: Path) -> None:
    """The front is (0.1, 3), (0.2, 1), the reference (0.4, 4): 0.2 x 3 + 0.1 x 1 = 0.7 in all."""
    found = run(
        out, two_objectives(), ["random", "asha"], CurveCosts(4), objectives=["error", "size"]
    )
    rows = found.rows.query("method == 'random'")
    task = curve_task(two_objectives(), "t")
    covered = {0.1: 0.3, 0.2: 0.6, 0.4: 0.0}
    first = rows.iloc[0]
    assert task.complete_cost == 3
    assert first["best"] == pytest.approx(covered[first["value"]])
    assert first["regret"] == pytest.approx(1 - covered[first["value"]] / 0.7)
    assert rows["regret"].iloc[-1] == pytest.approx(0.0)
    assert rows["best"].is_monotonic_increasing
    report = report_on_curves([found], None, None, figures=False)
    assert "hypervolume" in report.text


# The report


def test_the_area_is_the_mean_regret_over_all_costs() -> None:
    """1 until 0.5, then 0.8 until 1, 0.4 until 2.5, 0.1 until 4; the last one is beyond."""
    costs, regrets = np.array([0.5, 1.0, 2.5, 4.5]), np.array([0.8, 0.4, 0.1, 0.0])
    assert anytime_area(costs, regrets, 4.0) == pytest.approx(
        (0.5 * 1 + 0.5 * 0.8 + 1.5 * 0.4 + 1.5 * 0.1) / 4
    )
    assert anytime_area(np.array([9.0]), np.array([0.0]), 4.0) == 1.0


def test_a_report_has_means_over_tasks_and_their_intervals(tmp_path: Path, out: Path) -> None:
    run(out, past([[0.1, 0.1, 0.1], [0.2, 0.2, 0.2]]), ["random", "asha"], CurveCosts(2))
    whole = read(out)
    # By hand: random has regret 0.5 and 0.3 after one complete run, asha 0.1 and 0.3.
    rows = [
        (task, name, 0, cost, 0.0, 0.0, regret, 0.25)
        for task, name, cost, regret in (
            ("task0", "random", 1.0, 0.5),
            ("task0", "random", 2.0, 0.5),
            ("task1", "random", 1.0, 0.3),
            ("task0", "asha", 0.5, 0.1),
            ("task1", "asha", 0.5, 0.3),
        )
    ]
    made_by_hand = replace(whole, rows=pd.DataFrame(rows, columns=ROW))
    save(made_by_hand, out)
    made = report([out], tmp_path / "report", at=[0.5, 1, 99])
    regret, rank = (next(t for t in made.tables if t.name.endswith(e)) for e in ("regret", "rank"))
    half = 12.706 * np.std([0.5, 0.3], ddof=1) / math.sqrt(2)
    assert regret.columns[:4] == ("method", "n=0.5", "n=1", "n=2")
    found = {row[0]: row[1:] for row in regret.rows}
    assert found["random"][:2] == ("1.000 ± 0.000", f"0.400 ± {half:.3f}")
    assert found["random"][-1] == 0.25
    assert found["asha"][1].startswith("0.200")
    assert {row[0]: row[2] for row in rank.rows} == {
        "random": "1.75 ± 3.18",
        "asha": "1.25 ± 3.18",
    }
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert {"suite-regret.csv", "suite-rank.csv", "suite-regret-against-cost.png"} <= names


def test_costs_are_reported_in_steps_seconds_and_clock_time(out: Path) -> None:
    """A step takes 1, 2 or 4 seconds. Two workers begin two of the three trials at once.

    The first to end begins the third trial, whose first step is paid for when the second ends.
    """
    experience = past([[0.1, 0.2, 0.3]], pace=[1.0, 2.0, 4.0])
    rows = run(out, experience, ["random"], CurveCosts(5, workers=2)).rows
    assert rows["steps"].tolist() == [2 * LAST, 2 * LAST + 1, 3 * LAST]
    assert rows["clock"].tolist() == [1, 1, 2]
    assert rows["seconds"].iloc[-1] == (1 + 2 + 4) * LAST
    folder = out.with_suffix(".report")
    made = report([out], folder, at=[9, 18, 27], against="steps", figures=False)
    table = next(each for each in made.tables if each.name.endswith("-regret"))
    assert table.columns[1:4] == ("n=9", "n=18", "n=27")
    assert table.rows[0][1] == "1.000 ± -"
    assert table.rows[0][3] == "0.000 ± -"
    clock = report([out], folder, at=[1, 2], against="clock", figures=False)
    table = next(each for each in clock.tables if each.name.endswith("-regret"))
    assert table.rows[0][2] == "0.000 ± -"


def test_a_report_against_what_was_not_recorded_is_refused(tmp_path: Path, out: Path) -> None:
    made = run(out, past([[0.1, 0.2]]), ["random"], CurveCosts(1))
    save(replace(made, rows=made.rows.drop(columns=SPENT)), out)
    with refuses("spent-not-recorded", value="seconds"):
        report([out], tmp_path / "report", against="seconds")


def test_trials_and_curves_are_reported_apart(tmp_path: Path, out: Path) -> None:
    run(out, past([[0.1, 0.2], [0.3, 0.4]]), ["random"], CurveCosts(2))
    other = tmp_path / "other.parquet"
    replay(table(), ["random"], trials=2, seeds=1, out=other, suite="trials")
    with refuses("mixed-results", field="results", value="trials"):
        report([out, other], tmp_path / "report")


def test_regret_at_many_costs() -> None:
    made = CurveRun("t", "m", 0, cost=[0.5, 0.5, 2.5], regret=[0.4, 0.8, 0.1])
    assert regret_at(made, [0.4, 0.5, 2.4, 2.5]).tolist() == [1.0, 0.4, 0.4, 0.1]
