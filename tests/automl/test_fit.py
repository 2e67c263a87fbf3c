import os
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from foretune.automl.final_model.build import build_model
from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import TableInMemory
from foretune.automl.fit_folder import FitFolder
from foretune.automl.fit_result import FitResult
from foretune.automl.job import Job
from foretune.automl.job_listener import JobListener
from foretune.automl.knowledge.memory import Memory
from foretune.automl.model_scores import rows_with_target, scores_on
from foretune.automl.plan import FitOptions, make_plan
from foretune.experience import Experience, Status
from foretune.experience.trial import Trial
from foretune.run.executor_choice import HERE
from foretune.tables.identity import fingerprint
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.refusals import refuses

CHEAP = ("knn", "lda")
EVENTS = [name for name in vars(JobListener) if not name.startswith("_") and name != "progress"]


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))


def small_frame(seed: int = 0) -> pd.DataFrame:
    a, b = np.random.default_rng(seed).normal(size=(2, 90))
    classes = np.where(a > 0.4, "high", np.where(b > 0.0, "middle", "low"))
    return pd.DataFrame({"a": a, "b": b, "class": classes})


def small_table(seed: int = 0) -> Table:
    return Table.of(small_frame(seed), "class", name="small", task=Task.CLASSIFICATION)


def job(tmp_path, table: Table | None = None, *, remember: bool = True, **settings) -> Job:
    """A job in one folder, whose trials run in this process."""
    options = FitOptions(**{"trials": 3, "only": CHEAP, "method": "random", **settings})
    table = small_table() if table is None else table
    return Job(
        data=TableInMemory(table, "class"),
        options=options,
        folder=FitFolder(tmp_path / "out"),
        transfer=False,
        remember=remember,
        executor=None,
    )


class Heard(JobListener):
    """Notes the names of all events, and the incumbents."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.incumbents: list[Trial] = []
        for name in EVENTS:
            setattr(self, name, partial(self._note, name))

    def _note(self, name: str, *given: object) -> None:
        self.events.append(name)
        if name == "incumbent_changed":
            self.incumbents += given


class FirstRun(NamedTuple):
    """A job that was run once for several tests, which must not change its files."""

    place: Path
    """The folder above its home and its output."""
    result: FitResult
    listener: "Heard"


@pytest.fixture(scope="module")
def first_run(tmp_path_factory) -> FirstRun:
    place, heard = tmp_path_factory.mktemp("first run"), Heard()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETUNE_HOME", str(place / "home"))
        return FirstRun(place, job(place).run(heard), heard)


@pytest.fixture
def copied_run(first_run, tmp_path) -> FitResult:
    """Copy the files of the first run into `tmp_path`, without its memory."""
    shutil.copytree(first_run.place / "out", tmp_path / "out")
    return first_run.result


def test_a_fit_searches_fits_and_remembers(first_run, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(first_run.place / "home"))
    found = first_run.result
    assert found.ending == "trials"
    assert [trial.number for trial in found.trials] == [0, 1, 2]
    best = min(trial.values["log_loss"] for trial in found.trials)
    assert found.final.best.values["log_loss"] == best
    remembered = Memory.of_user().recall("pipeline-classification")
    assert remembered is not None
    assert remembered.tasks == (found.about.task,)
    assert len(remembered) == 3
    assert remembered.meta_features[found.about.task]["log_rows"] == pytest.approx(np.log(90))


def test_a_listener_hears_of_everything_in_order(first_run) -> None:
    events = first_run.listener.events
    assert [name for name in events if name != "incumbent_changed"] == [
        *("on_start", "search_began"),
        *("trial_began", "trial_ended") * 3,
        *("search_ended", "model_saved", "on_finish"),
    ]
    # The first trial is the best so far; the listener hears of this after the trial has ended.
    assert events[3:5] == ["trial_ended", "incumbent_changed"]


def test_the_incumbent_is_the_best_trial_so_far(first_run) -> None:
    losses = np.array([trial.values["log_loss"] for trial in first_run.result.trials])
    expected = np.unique(np.minimum.accumulate(losses))[::-1].tolist()
    assert [trial.values["log_loss"] for trial in first_run.listener.incumbents] == expected


def test_the_trials_are_an_experience(first_run) -> None:
    again = Experience.open(FitFolder(first_run.place / "out").trials)
    assert len(again) == 3
    assert again.metrics[0].name == "log_loss"


def test_a_saved_model_scores_a_test_table(first_run) -> None:
    model = Model.open(FitFolder(first_run.place / "out").model)
    held = small_frame(seed=3)
    by_hand = float(np.mean(model.predict(held) == held["class"].to_numpy()))
    assert scores_on(model, held, ["accuracy"]) == {"accuracy": pytest.approx(by_hand)}


def test_a_listener_that_fails_costs_the_memory_no_trial(tmp_path) -> None:
    class Broken(JobListener):
        def trial_ended(self, trial: Trial) -> None:
            raise RuntimeError("no terminal")

    with pytest.raises(RuntimeError):
        job(tmp_path).run(Broken())
    remembered = Memory.of_user().recall("pipeline-classification")
    assert remembered is not None
    assert len(remembered) == 1


def test_trials_that_are_not_in_the_memory_are_added_by_the_next_run(copied_run, tmp_path) -> None:
    assert Memory.of_user().recall("pipeline-classification") is None
    for _ in range(2):
        again = job(tmp_path)
        again.run()
        remembered = Memory.of_user().recall("pipeline-classification")
        assert remembered is not None
        assert len(remembered) == len(copied_run.trials) == 3


def test_the_same_call_goes_on(copied_run, tmp_path) -> None:
    later = job(tmp_path, trials=4).run()
    assert len(later.trials) == 4
    assert later.trials[:3] == copied_run.trials


def test_another_table_in_the_same_folder_has_a_study_of_its_own(copied_run, tmp_path) -> None:
    found = job(tmp_path, small_table(seed=5), trials=1).run()
    assert len(found.trials) == 1


@pytest.mark.usefixtures("trials_here")
def test_fits_in_one_folder_keep_their_tables_apart(tmp_path) -> None:
    tables = [small_table(seed) for seed in (0, 5)]
    for table in tables:
        made = replace(job(tmp_path, table, trials=1), executor=HERE)
        made.run()
    # A worker that opens its table late, after a restart, finds its own.
    kept = [Table.open(file) for file in (tmp_path / "out").glob("table*.npz")]
    assert {fingerprint(each) for each in kept} == {fingerprint(each) for each in tables}


def test_ctrl_c_keeps_the_best_so_far(tmp_path) -> None:
    class Impatient(JobListener):
        ended_trials = 0

        def trial_ended(self, trial: Trial) -> None:
            self.ended_trials += 1
            if self.ended_trials == 2:
                raise KeyboardInterrupt

    found = job(tmp_path).run(Impatient())
    assert found.ending == "stopped"
    assert sum(trial.status is Status.DONE for trial in found.trials) >= 2
    assert len(found.model.predict(small_frame())) == 90
    assert sum(trial.is_over for trial in job(tmp_path).run().trials) == 3


def job_with_blend(place: Path, table: Table | None = None) -> Job:
    return job(place, table, ensemble=3, trials=3, only=("knn", "naive_bayes"))


@pytest.fixture(scope="module")
def blend_run(tmp_path_factory) -> FirstRun:
    place, heard = tmp_path_factory.mktemp("blend run"), Heard()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETUNE_HOME", str(place / "home"))
        return FirstRun(place, job_with_blend(place).run(heard), heard)


def test_an_ensemble_blends_out_of_fold_predictions(blend_run) -> None:
    found = blend_run.result
    weights = [member.weight for member in found.final.members]
    assert sum(weights) == pytest.approx(1.0)
    assert found.final.blended is not None
    assert found.final.blended <= found.final.best.values["log_loss"] + 0.02
    assert len(found.model.members) == len(weights)


def test_an_ensemble_blends_no_predictions_of_another_target(blend_run, tmp_path) -> None:
    shutil.copytree(blend_run.place / "out", tmp_path / "out")
    table = small_table()
    noise = replace(table, y=np.random.default_rng(0).permutation(table.y))
    # The same configurations are tried on both.
    job_with_blend(tmp_path, noise).run()
    again = job_with_blend(tmp_path).run()
    assert again.final.blended == blend_run.result.final.blended


def test_a_test_table_may_have_gaps_in_a_target_of_whole_numbers() -> None:
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "y": [0, 1, None, 1]})
    known, y = rows_with_target(frame, "y", Task.CLASSIFICATION, ("0", "1"))
    assert known["a"].tolist() == [0.1, 0.2, 0.4]
    assert y.tolist() == [0.0, 1.0, 1.0]
    with refuses("unknown-class", field="y", value=["1"]):
        rows_with_target(frame.astype({"y": "Int64"}), "y", Task.CLASSIFICATION, ("0", "2"))


def test_if_all_trials_fail_the_reasons_and_advice_are_shown(tmp_path) -> None:
    """Failed trials count: without the advice, raised limits would change nothing."""
    few = replace(job(tmp_path, trials=1, trial_memory=1), executor=HERE)
    with refuses("no-trial-succeeded", value=1) as failed:
        few.run()
    assert "memory" in str(failed.value)
    assert "memory a trial; failed trials count, so raise --trials" in str(failed.value)
    assert job(tmp_path, trials=2).run().final.best.number == 1


@pytest.mark.parametrize(
    ("ended", "remedy"),
    [
        ([(Status.TIMEOUT, "over its limit of 8 s")], "allow more time or memory a trial"),
        ([(Status.FAILED, "out of memory: over its limit")], "allow more time or memory a trial"),
        ([(Status.FAILED, "ValueError: no")], "correct the table .* other estimators"),
        (
            [(Status.TIMEOUT, "over its limit"), (Status.FAILED, "ValueError: no")],
            "correct the table .*, or allow more time or memory a trial",
        ),
    ],
)
def test_the_remedy_is_for_what_failed(ended, remedy) -> None:
    table = small_table()
    plan = make_plan(table, FitOptions(only=CHEAP))
    trials = [
        Trial(number, {}, status, {}, 1.0, reason) for number, (status, reason) in enumerate(ended)
    ]
    with refuses("no-trial-succeeded") as failed:
        build_model(plan, table, trials, target="class")
    assert re.search(rf"\): {remedy}\Z", str(failed.value))


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.usefixtures("trials_here")
def test_files_with_rows_of_the_user_are_readable_by_the_owner_only(tmp_path) -> None:
    made = replace(job(tmp_path, trials=2), executor=HERE)
    before = os.umask(0)
    try:
        made.run()
    finally:
        os.umask(before)
    modes = {
        path.relative_to(made.folder.folder): path.stat().st_mode & 0o777
        for path in made.folder.folder.rglob("*")
    }
    tables = [mode for path, mode in modes.items() if path.suffix == ".npz"]
    inside = {path: mode for path, mode in modes.items() if path.parts[0] == "predictions"}
    assert tables == [0o600]
    assert len(inside) >= 4
    for path, mode in inside.items():
        assert mode == (0o600 if path.suffix in (".npy", ".folds", ".json") else 0o700)
    assert {mode for path, mode in modes.items() if path.name == "model.foretune"} <= {0o666}
