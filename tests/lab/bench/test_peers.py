"""The objective that Foretune shares with its peers: the nearest recorded configuration."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import curves
from benchmarks.peers.adapters import curves_optuna
from benchmarks.peers.adapters.foretune import ForetuneTuner
from benchmarks.peers.curve_play import CurvePlayer, Work
from benchmarks.peers.curve_problem import CurveProblem
from benchmarks.peers.objective import Parameter, Past, Problem
from benchmarks.peers.problems import problem_of
from benchmarks.peers.run import Contestant, Played, _play, keep_settings, seed_of
from benchmarks.peers.summary import Duel, duel, table

from foretune.errors import UsageError
from foretune.experience import Experience, Metric, Split
from foretune.space import Space
from foretune_lab.bench.curve_replay import CurveCosts, CurveRun, curve_task
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.replay import replay
from foretune_lab.bench.results import ReplaySettings
from tests.lab.bench.tables import results, table_with_curves

NAN = float("nan")
RATE = Parameter("rate", "float", 1e-4, 1.0, log=True)
LAYERS = Parameter("layers", "int", 1.0, 5.0, log=False)
KIND = Parameter("kind", "categorical", 0.0, 2.0, log=False)
WIDTH = Parameter("width", "float", 0.0, 10.0, log=False, parents=((2, (1.0,)),))


def problem(rows: list[list[float]], losses: list[float]) -> Problem:
    past = {"other": Past(np.array(rows), np.array(losses) + 1.0)}
    return Problem(
        "mine", (RATE, LAYERS, KIND, WIDTH), np.array(rows), np.array(losses), past, "f", ("other",)
    )


TABLE = problem(
    [[1e-4, 1.0, 0.0, NAN], [1e-2, 3.0, 0.0, NAN], [1e-2, 3.0, 1.0, 2.0], [1e-2, 3.0, 1.0, 8.0]],
    [0.1, 0.2, 0.3, 0.4],
)


@pytest.mark.parametrize("row", range(4))
def test_a_recorded_configuration_has_its_own_loss(row: int) -> None:
    assert TABLE.loss(TABLE.values[row]) == TABLE.losses[row]


def test_distances_are_those_of_the_unit_cube() -> None:
    # 1e-3 is a quarter of the way on the logarithmic scale, 2 layers are a quarter as well.
    near_the_first = np.array([9e-4, 2.0, 0.0, NAN])
    near_the_second = np.array([1.1e-3, 2.0, 0.0, NAN])
    assert [TABLE.nearest(near_the_first), TABLE.nearest(near_the_second)] == [0, 1]


def test_choices_that_differ_are_one_apart() -> None:
    # Kind 2 is recorded nowhere: all kinds are equally far, so the numbers decide.
    assert TABLE.nearest(np.array([1e-2, 3.0, 2.0, NAN])) == 1
    # Kind 1 at the width 5: both widths are 0.3 away, and the first of equals is taken.
    assert TABLE.nearest(np.array([1e-2, 3.0, 1.0, 5.0])) == 2
    assert TABLE.nearest(np.array([1e-2, 3.0, 1.0, 5.1])) == 3


def test_inactive_parameters_are_ignored() -> None:
    assert np.isnan(TABLE.settled(np.array([1e-2, 3.0, 0.0, 8.0]))[3])
    assert TABLE.nearest(np.array([1e-2, 3.0, 0.0, 8.0])) == 1


def test_a_child_of_an_inactive_parent_is_inactive() -> None:
    child = Parameter("child", "int", 0.0, 3.0, log=False, parents=((3, (1.0,)),))
    deep = Problem("t", (*TABLE.parameters, child), np.empty((0, 5)), np.empty(0), {}, "", ())
    assert np.isnan(deep.settled(np.array([1e-2, 3.0, 0.0, 1.0, 2.0]))[3:]).all()
    assert deep.settled(np.array([1e-2, 3.0, 1.0, 1.0, 2.0]))[4] == 2.0


@pytest.mark.parametrize("parameter", [RATE, LAYERS, KIND, WIDTH])
def test_the_way_to_the_cube_and_back(parameter: Parameter) -> None:
    values = np.array([parameter.low, parameter.high])
    assert parameter.to_unit(values).tolist() == [0.0, 1.0]
    assert [parameter.from_unit(unit) for unit in (0.0, 1.0)] == pytest.approx(values.tolist())


def test_whole_numbers_stay_whole() -> None:
    assert LAYERS.from_unit(0.4) == 3.0
    assert RATE.from_unit(0.5) == pytest.approx(1e-2)


def test_a_problem_file_holds_all(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "p.npz")
    again = Problem.load(tmp_path / "p.npz")
    assert again.parameters == TABLE.parameters
    assert (again.task, again.experience, again.learnt_from) == ("mine", "f", ("other",))
    np.testing.assert_array_equal(again.values, TABLE.values)
    np.testing.assert_array_equal(again.past["other"].losses, TABLE.losses + 1.0)


def test_some_rows_of_the_past_keep_their_losses() -> None:
    past = TABLE.past["other"].some(2, seed=0)
    for row, loss in zip(past.values, past.losses, strict=True):
        assert loss == TABLE.loss(row) + 1.0


def test_a_duel_counts_ties_half_and_the_trials_that_ours_needs() -> None:
    ours = np.array([[0.5, 0.3, 0.1], [0.5, 0.5, 0.5], [0.2, 0.2, 0.2]])
    theirs = np.array([[0.4, 0.3, 0.3], [0.5, 0.4, 0.4], [0.3, 0.2, 0.2]])
    better = np.minimum(ours, theirs)
    duel = Duel(ours, theirs, better, seeds=1, seconds=0.1, different=3.0)
    assert [duel.ahead(n).tolist() for n in (1, 2, 3)] == [[0, 0.5, 1], [0.5, 0, 0.5], [1, 0, 0.5]]
    assert duel.together(3).tolist() == [1, 0.5, 0.5]
    assert duel.needed().tolist() == [2.0, np.inf, 1.0]


def test_both_together_are_the_better_one_of_each_two_runs() -> None:
    played = results(
        {
            ("easy", "auto", 0): [0.5, 0.2],
            ("easy", "auto", 1): [0.9, 0.6],
            ("easy", "other", 0): [0.6, 0.3],
            ("easy", "other", 1): [0.5, 0.4],
        }
    )
    found = duel(played, "auto", "other")
    assert found.ours[0].tolist() == pytest.approx([0.7, 0.4])
    assert found.theirs[0].tolist() == pytest.approx([0.55, 0.35])
    assert found.better[0].tolist() == pytest.approx([0.5, 0.3])
    assert (found.ahead(2).item(), found.together(2).item()) == (0.0, 1.0)


SETTINGS = ReplaySettings("suite", 50, "leave-one-out", ("error",), ("min",), "abc", notes="")


def some_run(played: Played) -> Path:
    run = played.run("random", "mine", 0)
    run.parent.mkdir(parents=True)
    run.touch()
    return run


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(SETTINGS, trials=100), "trials 100 instead of 50"),
        (replace(SETTINGS, split="paper"), "split paper instead of leave-one-out"),
        (replace(SETTINGS, experience="def"), "another experience"),
        (replace(SETTINGS, notes="def"), "another content of the split"),
    ],
)
def test_runs_of_other_settings_are_refused(
    other: ReplaySettings, said: str, tmp_path: Path
) -> None:
    played = Played(tmp_path / "o.played")
    keep_settings(SETTINGS, played)
    some_run(played)
    keep_settings(SETTINGS, played)
    keep_settings(replace(SETTINGS, suite="renamed"), played)
    with pytest.raises(UsageError, match=f"{said}.*give another --out"):
        keep_settings(other, played)


def test_runs_of_settings_that_nobody_wrote_down_are_refused(tmp_path: Path) -> None:
    played = Played(tmp_path / "o.played")
    run = some_run(played)
    with pytest.raises(UsageError, match="not known: give another --out"):
        keep_settings(SETTINGS, played)
    assert run.exists()
    assert not played.settings.exists()


def test_problems_of_unknown_settings_are_written_anew(tmp_path: Path) -> None:
    played = Played(tmp_path / "o.played")
    old = played.problem("mine")
    old.parent.mkdir(parents=True)
    old.touch()
    keep_settings(SETTINGS, played)
    assert not old.exists()


def test_a_tuner_draws_anew_on_every_task(tmp_path: Path) -> None:
    given = Namespace(retry=False, trials=5, seconds=1.0, environments=tmp_path)
    asked: list[int] = []

    def run(command: list[str], **_: object) -> None:
        asked.append(int(command[6]))

    for task, seed in (("a", 0), ("b", 0), ("a", 1), ("a", 0)):
        _play(Contestant.called("random"), task, seed, given, Played(tmp_path), run)
    assert len(set(asked)) == 3
    assert asked[0] == asked[3] == seed_of("a", 0)
    assert all(0 <= seed < 2**31 for seed in asked)


def test_trials_of_others_may_leave_constants_inactive(tmp_path: Path) -> None:
    space = Space.of({"m": {"a": {"c": 3, "x": (0.0, 1.0)}, "b": {}}})
    configs = space.encode([{"m": "a", "m:a:c": 3, "m:a:x": 0.5}, {"m": "b"}])
    made = Experience.build(space, [Metric("v")], ["t"], [0, 0], configs, [0, 1], [1.0, 2.0])
    made.save(path := tmp_path / "e.parquet")
    problem = problem_of(made, path, Split("t", (), (), ("t",)), "t")
    tuner = ForetuneTuner("random", problem, 0)
    tuner.observe(problem.values, problem.losses)
    assert tuner._optimizer.told.configs == configs


def test_past_tasks_without_a_success_are_not_handed_to_peers(tmp_path: Path) -> None:
    space = Space.of({"rate": (0.0, 1.0)})
    experience = Experience.from_matrix(
        space,
        space.sample(2, seed=0),
        ["mine", "good", "bad"],
        [Metric("error")],
        {"error": np.array([[0.1, 0.2], [0.3, NAN], [NAN, NAN]])},
        failed=np.array([[False, False], [False, True], [True, True]]),
    )
    split = Split("mine", ("good", "bad"), (), ("mine",))
    handed = problem_of(experience, tmp_path / "e.parquet", split, "mine").past
    assert list(handed) == ["good"]
    assert handed["good"].losses.tolist() == [0.3]


def test_a_table_of_several_suites_tells_of_each() -> None:
    both = {("a", "auto", 0): [0.5, 0.2], ("a", "other", 0): [0.6, 0.1]}
    alone = {("b", "auto", 0): [0.5, 0.2]}
    said = table([results(both, suite="first"), results(alone, suite="second")], "auto", [1, 2])
    head, _, row = said.splitlines()
    assert head.endswith("| first | second |")
    assert row == "| other | 1 x 1 | 100% (100%) | 0% (50%) | not reached | 2 | 0.500 | 100 0 |  |"
    assert "first" not in table([results(both, suite="first")], "auto", [1, 2])


def played(folder: Path, losses: list[float], peers: list[str], budget: float) -> list[CurveRun]:
    """What peers of this environment do on one task, in this process."""
    file = folder / "past.parquet"
    table_with_curves([losses]).save(file)
    given = curves.Given(file, tuple(peers), budget, 1)
    experience = curves.load(given)
    [task] = curves.prepare_folder(experience, given, folder)
    setting = CurveProblem.load(folder / "problems" / f"{task}.npz")
    for peer in peers:
        (folder / "runs" / peer).mkdir(parents=True)
        made = CurvePlayer(setting, curves_optuna.PEERS[peer](setting, 1)).play(budget)
        np.savez(folder / "runs" / peer / f"{task}-0.npz", **made)
    return list(curves.collect_runs(folder, {task: curve_task(experience, task)}))


def test_pruners_of_optuna_pay_for_their_steps_as_our_replay_does(tmp_path: Path) -> None:
    """Without a pruner a trial costs 1; the median pruner lets five trials run to their ends."""
    names = ["optuna-tpe", "optuna-tpe-median"]
    whole, median = played(tmp_path, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], names, 7.0)
    assert whole.cost == [1, 2, 3, 4, 5, 6, 7]
    assert median.cost[:5] == [1, 2, 3, 4, 5]
    assert set(whole.value) <= {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}
    given = curves.Given(tmp_path / "past.parquet", (), 7.0, 1)
    experience = curves.load(given)
    ours = replay(
        experience,
        ["random"],
        curves=CurveSettings(CurveCosts(7.0)),
        seeds=1,
        suite="past",
        out=tmp_path / "ours.parquet",
    )
    assert ours.settings.difference(curves.settings_of(experience, given, "past")) == ""


class TwoSteps:
    """A peer that runs one trial, three steps at a time."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, float]] = []
        self.ends: list[tuple[int, bool]] = []

    def ask(self) -> Work:
        return Work(0, np.array([1e-2]), until=3.0 * (len(self.ends) + 1))

    def report(self, work: Work, tick: int, loss: float) -> bool:
        self.heard.append((tick, loss))
        return True

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        self.ends.append((tick, complete))


def test_a_peer_pays_for_further_steps_of_a_trial_only() -> None:
    """Nine steps. The loss at step 2 is not finite: the peer hears 0.9, the worst so far."""
    rows = problem([[1e-2, 3.0, 0.0, NAN]], [0.1])
    one = replace(rows, parameters=(RATE,), values=rows.values[:, :1])
    losses = np.array([0.9, NAN, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    steps = np.arange(1.0, 10.0)
    setting = CurveProblem(one, np.array([0.0, 9.0]), steps, losses, steps, 9.0, 1.5)
    assert setting.ticks == (2, 9)
    peer = TwoSteps()
    made = CurvePlayer(setting, peer).play(1.0)
    assert made["cost"].tolist() == pytest.approx([3 / 9, 6 / 9, 1.0])
    assert made["value"].tolist() == made["best"].tolist() == [0.7, 0.4, 0.1]
    assert peer.heard[:3] == [(1, 0.9), (2, 0.9), (3, 0.7)]
    assert [tick for tick, _ in peer.heard] == list(range(1, 10))
    assert peer.ends == [(3, False), (6, False), (9, True)]


def test_steps_that_are_no_whole_numbers_are_counted() -> None:
    one = replace(TABLE, parameters=(RATE,), values=TABLE.values[:1, :1], losses=TABLE.losses[:1])
    shares = np.array([0.1, 0.25, 0.5, 1.0])
    setting = CurveProblem(one, np.array([0.0, 4.0]), shares, shares, shares, 1.0, 0.2)
    assert setting.curve(0).ticks.tolist() == [1, 2, 3, 4]
    assert setting.ticks == (2, 4)
