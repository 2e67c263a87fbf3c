import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from foretune.automl.final_model.build import fit_final_model
from foretune.automl.final_model.model import Model
from foretune.automl.job import FitFolder, Job
from foretune.automl.knowledge.memory import Memory
from foretune.automl.plan import FitOptions, make_plan
from foretune.automl.test_scores import rows_with_target, scores_on
from foretune.errors import UsageError
from foretune.experience import Experience, Status
from foretune.experience.trial import Trial
from foretune.tables.identity import fingerprint
from foretune.tables.table import Table
from foretune.tables.target import Task

from .samples import mixed_frame, mixed_table

CHEAP = ("knn", "lda")


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))


def job(tmp_path, **settings) -> tuple[Job, object]:
    wishes = FitOptions(**{"trials": 4, "only": CHEAP, "method": "random", **settings})
    table = mixed_table(Task.CLASSIFICATION)
    made = Job(table, "class", wishes, FitFolder(tmp_path / "out"), transfer=False)
    return made, make_plan(table, wishes)


def test_a_fit_searches_fits_and_remembers(tmp_path) -> None:
    made, plan = job(tmp_path)
    found = made.run(plan)
    assert found.ending == "trials"
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]
    best = min(trial.values["log_loss"] for trial in found.trials)
    assert found.conclusion.best.values["log_loss"] == best
    remembered = Memory.of_user().recall("pipeline-classification")
    assert remembered is not None
    assert remembered.tasks == (found.about.task,)
    assert len(remembered) == 4
    assert remembered.meta_features[found.about.task]["log_rows"] == pytest.approx(np.log(90))


@pytest.mark.usefixtures("trials_here")
def test_trials_that_a_crash_kept_from_the_memory_are_remembered_by_the_next_run(tmp_path) -> None:
    made, plan = job(tmp_path)
    made.remember = False
    made.run(plan)
    assert Memory.of_user().recall("pipeline-classification") is None
    for _ in range(2):
        again, plan = job(tmp_path)
        again.run(plan)
        remembered = Memory.of_user().recall("pipeline-classification")
        assert remembered is not None
        assert len(remembered) == 4


@pytest.mark.usefixtures("trials_here")
def test_the_same_call_goes_on(tmp_path) -> None:
    first, plan = job(tmp_path)
    earlier = first.run(plan)
    again, plan = job(tmp_path, trials=6)
    later = again.run(plan)
    assert len(later.trials) == 6
    assert later.trials[:4] == earlier.trials


@pytest.mark.usefixtures("trials_here")
def test_another_table_in_the_same_folder_has_a_study_of_its_own(tmp_path) -> None:
    made, plan = job(tmp_path)
    made.run(plan)
    other = mixed_table(Task.CLASSIFICATION, seed=5)
    wishes = made.wishes
    second = Job(other, "class", wishes, made.place, transfer=False)
    found = second.run(make_plan(other, wishes))
    assert len(found.trials) == 4


@pytest.mark.usefixtures("trials_here")
def test_fits_in_one_folder_keep_their_tables_apart(tmp_path) -> None:
    first, plan = job(tmp_path, trials=1)
    first.run(plan)
    other = mixed_table(Task.CLASSIFICATION, seed=5)
    second = Job(other, "class", first.wishes, first.place, transfer=False)
    second.run(make_plan(other, first.wishes))
    # Whoever opens its table late, such as a worker that is started anew, finds its own.
    kept = [Table.open(file) for file in first.place.folder.glob("table*.npz")]
    assert {fingerprint(each) for each in kept} == {fingerprint(plan.table), fingerprint(other)}


def test_ctrl_c_keeps_the_best_so_far(tmp_path, request) -> None:
    class Impatient:
        ended_trials = 0

        def trial_began(self, trial: Trial) -> None:
            pass

        def trial_ended(self, trial: Trial) -> None:
            self.ended_trials += 1
            if self.ended_trials == 2:
                raise KeyboardInterrupt

    made, plan = job(tmp_path)
    made.watch = Impatient()
    found = made.run(plan)
    assert found.ending == "stopped"
    assert sum(trial.status is Status.DONE for trial in found.trials) >= 2
    assert len(found.conclusion.model.predict(mixed_frame())) == 90
    request.getfixturevalue("trials_here")
    resumed, plan = job(tmp_path)
    assert sum(trial.is_over for trial in resumed.run(plan).trials) == 4


@pytest.mark.usefixtures("trials_here")
def test_an_ensemble_blends_out_of_fold_predictions(tmp_path) -> None:
    made, plan = job(tmp_path, ensemble=3, trials=6, only=("knn", "naive_bayes"))
    found = made.run(plan)
    weights = [member.weight for member in found.conclusion.members]
    assert sum(weights) == pytest.approx(1.0)
    assert found.conclusion.blended is not None
    assert found.conclusion.blended <= found.conclusion.best.values["log_loss"] + 0.02
    assert len(found.conclusion.model.members) == len(weights)


@pytest.mark.usefixtures("trials_here")
def test_an_ensemble_blends_no_predictions_of_another_target(tmp_path) -> None:
    first, plan = job(tmp_path, ensemble=3, trials=6, only=("knn", "naive_bayes"))
    blended = first.run(plan).conclusion.blended
    y = np.random.default_rng(0).permutation(first.table.y)
    noise = replace(first.table, y=y)
    # The same configurations are tried on both.
    second = Job(noise, "class", first.wishes, first.place, transfer=False)
    second.run(make_plan(noise, first.wishes))
    again, plan = job(tmp_path, ensemble=3, trials=6, only=("knn", "naive_bayes"))
    assert blended is not None
    assert again.run(plan).conclusion.blended == blended


@pytest.mark.usefixtures("trials_here")
def test_the_trials_are_an_experience(tmp_path) -> None:
    made, plan = job(tmp_path)
    found = made.run(plan)
    found.experience().save(made.place.trials)
    again = Experience.open(made.place.trials)
    assert len(again) == 4
    assert again.metrics[0].name == "log_loss"


@pytest.mark.usefixtures("trials_here")
def test_a_saved_model_scores_a_test_table(tmp_path) -> None:
    made, plan = job(tmp_path, metric="accuracy")
    found = made.run(plan)
    found.conclusion.model.save(made.place.model)
    model = Model.open(made.place.model)
    held = mixed_frame(seed=3)
    by_hand = float(np.mean(model.predict(held) == held["class"].to_numpy()))
    assert scores_on(model, held, ["accuracy"]) == {"accuracy": pytest.approx(by_hand)}


def test_a_test_table_may_have_gaps_in_a_target_of_whole_numbers() -> None:
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "y": [0, 1, None, 1]})
    known, y = rows_with_target(frame, "y", Task.CLASSIFICATION, ("0", "1"))
    assert known["a"].tolist() == [0.1, 0.2, 0.4]
    assert y.tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(UsageError, match="has '1' besides"):
        rows_with_target(frame.astype({"y": "Int64"}), "y", Task.CLASSIFICATION, ("0", "2"))


def test_where_all_trials_fail_the_reasons_are_given_and_advice_that_works(
    tmp_path, request
) -> None:
    """Failed trials count: without the advice, lifted limits would change nothing."""
    made, plan = job(tmp_path, trials=2, trial_memory=1)
    with pytest.raises(UsageError, match=r"none of 2 did .*memory") as failed:
        made.run(plan)
    assert "memory a trial; failed trials count, so raise --trials" in str(failed.value)
    request.getfixturevalue("trials_here")
    more, plan = job(tmp_path, trials=3)
    assert more.run(plan).conclusion.best.number == 2


@pytest.mark.usefixtures("trials_here")
def test_nothing_is_remembered_where_that_is_switched_off(tmp_path) -> None:
    made, plan = job(tmp_path)
    made.remember = False
    made.run(plan)
    assert Memory.of_user().recall("pipeline-classification") is None


@pytest.mark.parametrize(
    ("ended", "remedy"),
    [
        ([(Status.TIMEOUT, "over its limit of 8 s")], "allow more time or memory a trial"),
        ([(Status.FAILED, "out of memory: over its limit")], "allow more time or memory a trial"),
        ([(Status.FAILED, "ValueError: no")], "mend what these .* other estimators"),
        (
            [(Status.TIMEOUT, "over its limit"), (Status.FAILED, "ValueError: no")],
            "mend what .*, or allow more time or memory a trial",
        ),
    ],
)
def test_the_remedy_is_for_what_failed(tmp_path, ended, remedy) -> None:
    made, plan = job(tmp_path)
    trials = [
        Trial(number, {}, status, {}, 1.0, reason) for number, (status, reason) in enumerate(ended)
    ]
    with pytest.raises(UsageError, match=rf"\): {remedy}\Z"):
        fit_final_model(plan, made.table, trials, target="class")


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_files_with_rows_of_the_user_are_readable_by_the_owner_only(tmp_path) -> None:
    made, plan = job(tmp_path, trials=2)
    before = os.umask(0)
    try:
        made.run(plan)
    finally:
        os.umask(before)
    modes = {
        path.relative_to(made.place.folder): path.stat().st_mode & 0o777
        for path in made.place.folder.rglob("*")
    }
    tables = [mode for path, mode in modes.items() if path.suffix == ".npz"]
    inside = {path: mode for path, mode in modes.items() if path.parts[0] == "predictions"}
    assert tables == [0o600]
    assert len(inside) >= 4
    for path, mode in inside.items():
        assert mode == (0o600 if path.suffix == ".npy" else 0o700)
    assert {mode for path, mode in modes.items() if path.name == "model.foretune"} <= {0o666}
