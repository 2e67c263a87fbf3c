"""Trials that report, stop, pause and go on, in studies in memory and on disk."""

import math
import sqlite3
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from foretune.experience import Direction, Metric, Status
from foretune.experience.evaluation_rows import build_experience
from foretune.methods.stopping import StepRange, StoppingPolicy, learn_steps, make_policy
from foretune.run import Budget, InlineExecutor, tune
from foretune.run.budget import LoopTimes
from foretune.run.trial_folders import TrialFolders
from foretune.run.watch import Watch
from foretune.search import Optimizer
from foretune.stores import import_experience
from foretune.stores.studies import open_study
from tests.refusals import refuses, warns
from tests.run.test_tuning import ERROR, SPACE, bowl, memory, optimizer

LAST = 9
ASHA = make_policy("asha", StepRange(1, LAST, 3))


class Training:
    """A function that takes steps, keeps a checkpoint, and notes every step that it takes."""

    def __init__(self, last=LAST, checkpoints=True, interrupt_at=None):
        self.last, self.checkpoints, self.interrupt_at = last, checkpoints, interrupt_at
        self.taken = []

    def __call__(self, config, trial):
        file = trial.folder / "step"
        begin = int(file.read_text()) if self.checkpoints and file.exists() else 0
        assert begin == 0 or begin >= trial.resumed_from
        for step in range(begin + 1, self.last + 1):
            if len(self.taken) == self.interrupt_at:
                raise KeyboardInterrupt
            self.taken.append((trial.number, step))
            file.write_text(str(step))
            trial.report(step, bowl(config) + 1 / step)
            if trial.should_stop():
                return None
        return bowl(config) + 1 / self.last


@contextmanager
def opened(kind, folder, metrics=(ERROR,)):
    if kind == "memory":
        yield memory(metrics=metrics)
    else:
        with open_study(f"{folder}/study.db", "study", space=SPACE, metrics=metrics) as study:
            yield study


both = pytest.mark.parametrize("kind", ["memory", "sqlite"])


def curve_of(trial):
    return list(zip(trial.curve.steps, trial.curve.values["error"], strict=True))


def expected(config, steps):
    return [(float(step), bowl(config) + 1 / step) for step in range(1, int(steps) + 1)]


@both
def test_asha_pauses_and_resumes_trials_from_their_checkpoints(kind, tmp_path):
    training = Training()
    with opened(kind, tmp_path) as study:
        assert tune(study, optimizer(), InlineExecutor(training), Budget(20), stop=ASHA) == "trials"
        trials = study.trials()
    assert len(training.taken) == len(set(training.taken))  # no step twice
    last = [trial.last_step for trial in trials]
    assert {Status.DONE, Status.PAUSED} == {trial.status for trial in trials}
    assert sorted(set(last)) == [1.0, 3.0, 9.0]
    # About a third go on; early ones may go on by luck.
    assert sum(step > 1 for step in last) <= 20 // 3 + 2
    assert sum(step > 3 for step in last) <= 20 // 9 + 2
    for trial in trials:
        assert curve_of(trial) == expected(trial.config, trial.last_step)
        assert (trial.status is Status.DONE) == (trial.last_step == 9.0)
        if trial.status is Status.PAUSED:
            assert trial.values["error"] == bowl(trial.config) + 1 / trial.last_step
            assert trial.reason


@both
@pytest.mark.parametrize("at", [5, 23, 40])
def test_an_interrupted_race_goes_on_as_if_it_had_never_stopped(kind, at, tmp_path):
    whole = memory()
    tune(whole, optimizer(), InlineExecutor(Training()), Budget(20), stop=ASHA)
    folders = TrialFolders(tmp_path / "folders")
    with opened(kind, tmp_path) as study:
        interrupted = InlineExecutor(Training(interrupt_at=at))
        with pytest.raises(KeyboardInterrupt):
            tune(study, optimizer(), interrupted, Budget(20), stop=ASHA, folders=folders)
        tune(study, optimizer(), InlineExecutor(Training()), Budget(20), stop=ASHA, folders=folders)
        parts = study.trials()
    for one, other in zip(parts, whole.trials(), strict=True):
        assert (one.config, one.status, curve_of(one)) == (
            other.config, other.status, curve_of(other)
        )  # fmt: skip


def test_folders_lie_beside_the_store_and_only_those_of_paused_trials_stay(tmp_path):
    with opened("sqlite", tmp_path) as study:
        tune(study, optimizer(), InlineExecutor(Training()), Budget(20), stop=ASHA)
        paused = [t.number for t in study.trials() if t.status is Status.PAUSED]
    folders = TrialFolders(tmp_path / "study.db.trials" / "study")
    assert folders.numbers() == paused
    with opened("sqlite", tmp_path) as study:  # now every trial runs to its end
        tune(study, optimizer(), InlineExecutor(Training()), Budget(20))
        assert {trial.status for trial in study.trials()} == {Status.DONE}
    assert not (tmp_path / "study.db.trials").exists()


def test_checkpoints_over_their_limit_are_dropped_and_their_trials_begin_anew(tmp_path):
    training = Training()
    folders = TrialFolders(tmp_path / "folders", limit_bytes=4)  # each checkpoint has one byte
    study = memory()
    with warns("begun-anew"):
        tune(study, optimizer(), InlineExecutor(training), Budget(30), stop=ASHA, folders=folders)
    assert len(folders.numbers()) == 4
    assert folders.dropped > 0
    repeated = [trial for trial in study.trials() if "repeated_seconds" in trial.notes]
    assert repeated
    for trial in study.trials():
        assert curve_of(trial) == expected(trial.config, trial.last_step)


def test_a_function_without_checkpoints_is_started_anew_and_that_is_counted():
    training, study = Training(checkpoints=False), memory()
    with warns("begun-anew"):
        tune(study, optimizer(), InlineExecutor(training), Budget(12), stop=ASHA)
    assert len(training.taken) > len(set(training.taken))
    (done, *_) = [trial for trial in study.trials() if trial.status is Status.DONE]
    assert done.notes["repeated_seconds"] >= 0.0
    assert curve_of(done) == expected(done.config, LAST)


@pytest.mark.parametrize("name", ["asha", "hyperband", "halving", "median"])
def test_policies_find_out_by_themselves_which_steps_there_are(name):
    study, training = memory(), Training(last=27)  # 27 would be a level of ASHA
    tune(study, optimizer(), InlineExecutor(training), Budget(30), stop=name)
    trials = study.trials()
    assert len(trials) == 30
    assert any(t.status is Status.DONE and t.last_step == 27.0 for t in trials)
    assert len(training.taken) < 0.6 * 30 * 27
    for trial in trials:
        assert curve_of(trial) == expected(trial.config, trial.last_step)
        if name in ("halving", "hyperband"):  # nobody waits for ever
            assert trial.status in (Status.DONE, Status.STOPPED)


@both
def test_a_search_without_a_complete_trial_completes_the_best_one(kind, tmp_path):
    with opened(kind, tmp_path) as study:
        tune(study, optimizer(), InlineExecutor(Training()), Budget(2), stop=ASHA)
        first, second = study.trials()
    better, other = sorted([first, second], key=lambda trial: bowl(trial.config))
    assert (better.status, other.status) == (Status.DONE, Status.PAUSED)


def test_generators_and_functions_of_one_argument_take_part():
    def yielding(config):
        for step in range(1, LAST + 1):
            yield step, bowl(config) + 1 / step

    study = memory()
    with warns("begun-anew"):
        tune(study, optimizer(), InlineExecutor(yielding), Budget(12), stop=ASHA)
    assert {Status.DONE, Status.PAUSED} == {trial.status for trial in study.trials()}
    silent = memory()
    with warns("no-report"):
        tune(silent, optimizer(), InlineExecutor(bowl), Budget(3), stop=ASHA)
    assert [trial.status for trial in silent.trials()] == [Status.DONE] * 3


def test_the_first_of_several_metrics_decides_and_the_others_are_kept():
    metrics = [Metric("score", Direction.MAX), Metric("size")]

    def training(config, trial):
        for step in range(1, LAST + 1):
            trial.report(step, score=-bowl(config) - 1 / step, size=-bowl(config), other=step)
            if trial.should_stop():
                return None
        return {"score": -bowl(config), "size": 1.0}

    study = memory(metrics=metrics)
    chosen = Optimizer.of(SPACE, method="random", objectives=("score", "size"))
    with warns("begun-anew"):
        tune(study, chosen, InlineExecutor(training), Budget(12), stop=ASHA)
    trials = study.trials()
    done = [t for t in trials if t.status is Status.DONE]
    best = min(trials, key=lambda trial: bowl(trial.config))
    assert best in done
    assert best.curve.values["other"] == [float(step) for step in range(1, LAST + 1)]
    kept = build_experience(SPACE, metrics, [trial.evaluation("task") for trial in trials])
    assert kept.curves.last_steps.tolist() == [trial.last_step for trial in trials]
    assert (kept.status == Status.STOPPED).sum() == len(trials) - len(done)


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        (lambda trial, step: trial.report(step, 1.0 / step), "unnamed-report"),
        (lambda trial, step: trial.report(step, size=1.0), "report-lacks-metric"),
        (lambda trial, step: trial.report(step, error=1.0 / step), "report-lacks-metric"),
    ],
)
def test_reports_that_lack_a_metric_are_kept_with_one_warning(report, rule):
    def training(config, trial):
        for step in range(1, LAST + 1):
            report(trial, step)
            if trial.should_stop():
                return None
        return {"error": bowl(config), "size": 1.0}

    study = memory(metrics=[ERROR, Metric("size")])
    chosen = Optimizer.of(SPACE, method="random", objectives=("error",))
    with warns(rule):
        tune(study, chosen, InlineExecutor(training), Budget(1), stop=ASHA)
    (trial,) = study.trials()
    assert (trial.status, trial.last_step) == (Status.DONE, LAST)


@both
def test_a_trial_that_diverges_waits_and_its_values_are_kept(kind, tmp_path):
    def training(config, trial):
        for step in range(1, LAST + 1):
            trial.report(step, math.nan if trial.number else bowl(config) + step, rate=math.inf)
            if trial.should_stop():
                return None
        return bowl(config)

    with opened(kind, tmp_path) as study, warns("begun-anew"):
        tune(study, optimizer(), InlineExecutor(training), Budget(6), stop=ASHA)
        first, second, *_ = study.trials()
    assert (first.status, second.status) == (Status.DONE, Status.PAUSED)
    assert second.curve.values == {"error": [math.inf], "rate": [math.inf]}


def test_a_trial_that_ignores_the_request_to_stop_runs_to_its_end():
    def deaf(config, trial):
        for step in range(1, LAST + 1):
            trial.report(step, bowl(config) + 1 / step)
        return bowl(config)

    study, seconds = memory(), count()
    times = LoopTimes(clock=lambda: float(next(seconds)))
    with warns("stop-not-heeded"):
        tune(study, optimizer(), InlineExecutor(deaf), Budget(3), stop=ASHA, times=times)
    assert [trial.status for trial in study.trials()] == [Status.DONE] * 3
    assert [trial.last_step for trial in study.trials()] == [LAST] * 3


def test_a_watch_hears_of_steps_and_pauses():
    class Count(Watch):
        def __init__(self):
            self.steps, self.paused, self.ended = 0, [], []

        def trial_reported(self, number, step):
            self.steps += 1

        def trial_paused(self, trial):
            self.paused.append(trial.number)

        def trial_ended(self, trial):
            self.ended.append(trial.number)

    heard, training, study = Count(), Training(), memory()
    tune(study, optimizer(), InlineExecutor(training), Budget(12), stop=ASHA, watch=heard)
    assert heard.steps == len(training.taken)
    again = Count()
    tune(study, optimizer(), InlineExecutor(training), Budget(12), stop=ASHA, watch=again)
    paused = [t.number for t in study.trials() if t.status is Status.PAUSED]
    assert (again.steps, again.paused) == (0, paused)
    assert again.ended == [t.number for t in study.trials() if t.status is Status.DONE]


# Stores


def test_a_store_keeps_whole_reports_and_shows_optuna_what_it_can(tmp_path):
    points = [(0.25, 0.9), (0.5, 0.8), (1, 0.7), (2, math.inf), (3, 0.5)]

    def training(config, trial):
        for step, value in points:
            trial.report(step, value, size=step)
        return 0.5

    with opened("sqlite", tmp_path) as study:
        tune(study, optimizer(), InlineExecutor(training), Budget(1))
    with opened("sqlite", tmp_path) as study:
        (trial,) = study.trials()
    assert curve_of(trial) == points
    assert trial.curve.values["size"] == [step for step, _ in points]
    assert list(trial.curve.seconds) == sorted(trial.curve.seconds)
    rows = _query(tmp_path, "SELECT step, intermediate_value, intermediate_value_type "
                  "FROM trial_intermediate_values ORDER BY step")  # fmt: skip
    assert rows == [(1, 0.7, "FINITE"), (2, None, "INF_POS"), (3, 0.5, "FINITE")]


def test_past_studies_have_whole_curves_also_of_paused_trials(tmp_path):
    metrics = [ERROR, Metric("size")]

    def training(config, trial):
        for step in range(1, LAST + 1):
            trial.report(step / 2, error=bowl(config) + 1 / step, size=step)
            if trial.should_stop():
                return None
        return {"error": bowl(config), "size": step}

    chosen = Optimizer.of(SPACE, method="random", objectives=("error",))
    with opened("sqlite", tmp_path, metrics) as study, warns("begun-anew"):
        tune(study, chosen, InlineExecutor(training), Budget(16), stop="asha")
        trials = study.trials()
    past = import_experience("optuna", tmp_path / "study.db")
    assert [metric.name for metric in past.metrics] == ["error", "size"]
    assert past.curves.last_steps.tolist() == [trial.last_step for trial in trials]
    assert not np.isnan(past.curves.seconds).any()
    row = next(trial.number for trial in trials if trial.status is Status.PAUSED)
    assert past.status[row] == Status.STOPPED
    assert past.values[row].tolist() == [trials[row].values[m.name] for m in metrics]


def test_a_stopped_trial_is_pruned_for_optuna(tmp_path):
    class Second(StoppingPolicy):
        def decide(self, race, trial):
            return make_policy("median", StepRange(1, 9)).decide(race, trial)

    with opened("sqlite", tmp_path) as study:
        tune(study, optimizer(), InlineExecutor(Training()), Budget(12), stop=Second())
        stopped = [trial for trial in study.trials() if trial.status is Status.STOPPED]
    assert stopped
    states = _query(tmp_path, "SELECT number FROM trials WHERE state = 'PRUNED' ORDER BY number")
    assert [number for (number,) in states] == [trial.number for trial in stopped]
    for trial in stopped:
        assert trial.values["error"] == curve_of(trial)[-1][1]


def test_many_reports_are_kept_once_and_in_order(tmp_path):
    def training(config, trial):
        for step in range(120):
            trial.report(step, float(step))
        return 0.0

    with opened("sqlite", tmp_path) as study:
        tune(study, optimizer(), InlineExecutor(training), Budget(2))
    with opened("sqlite", tmp_path) as study:
        curves = [curve_of(trial) for trial in study.trials()]
    assert curves == [[(float(step), float(step)) for step in range(120)]] * 2


def test_a_paused_trial_can_be_resumed_by_one_process_only(tmp_path):
    with opened("sqlite", tmp_path) as one, opened("sqlite", tmp_path) as other:
        number = one.begin({"x": 0.5, "y": 0.5}, chosen_by="random")
        one.pause(number, seconds=1.5, reason="waits")
        (paused,) = other.changes(0).trials
        assert (paused.status, paused.seconds, paused.reason) == (Status.PAUSED, 1.5, "waits")
        assert one.abandoned_trials() == other.abandoned_trials() == []
        assert other.resume(number)
        assert not one.resume(number)
        other.pause(number, seconds=2.5)
        seen = one.changes(0)
        assert [(t.status, t.seconds) for t in seen.trials] == [(Status.PAUSED, 2.5)]
        assert other.resume(number)
        other.let_go(number)
        assert [trial.number for trial in one.abandoned_trials()] == [number]


def test_reports_of_a_process_that_lost_its_trial_are_not_kept(tmp_path):
    from foretune.experience.curves import CurvePoint

    with opened("sqlite", tmp_path) as one, opened("sqlite", tmp_path) as other:
        number = one.begin({"x": 0.5, "y": 0.5}, chosen_by="random")
        one.report(number, [CurvePoint(1.0, {"error": 1.0}, 0.1)])
        other.take_over(number)
        one.report(number, [CurvePoint(2.0, {"error": 2.0}, 0.2)])
        other.report(number, [CurvePoint(2.0, {"error": 3.0}, 0.3)])
        assert other.curve(number).values["error"] == [1.0, 3.0]


def _query(folder, query):
    with sqlite3.connect(folder / "study.db") as connection:
        return connection.execute(query).fetchall()


# Arguments


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"first": 0.0, "last": 9.0}, "step-range"),
        ({"first": 10.0, "last": 9.0}, "step-range"),
        ({"eta": 1.0}, "eta"),
    ],
)
def test_steps_that_make_no_sense_are_refused_at_once(settings, rule):
    with refuses(rule):
        learn_steps("asha", **settings)


def test_an_unknown_policy_is_refused():
    with refuses("unknown-policy", value="ahsa"):
        tune(memory(), optimizer(), InlineExecutor(bowl), Budget(1), stop="ahsa")


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with refuses("not-a-folder", field="folder"):
        TrialFolders(tmp_path / "file" / "folder")
