"""`foretune fit` as a user meets it."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest

from foretune.automl.estimators.fitted_pipeline import FitPipeline, Member, refit
from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import TableFile
from foretune.automl.fit_folder import FitFolder
from foretune.automl.job import Job
from foretune.automl.metrics import SCORERS
from foretune.automl.plan import DEFAULT_ENSEMBLE, DEFAULT_REFIT_ENSEMBLE, FitOptions
from foretune.automl.spaces import load_shipped_space
from foretune.cli.fit import run_job
from foretune.cli.typed_command import command_words, with_trials
from foretune.errors import UsageError
from foretune.experience import Experience
from foretune.run.executor import Limits
from foretune.run.executor_choice import ExecutorChoice
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame, mixed_table
from tests.inline_site import InlineSite, PreparedExecutor

QUICK = ("--trials", 3, "--only", "knn, lda", "--method", "random", "--jobs", 1, "--no-transfer")


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def quick_job(table: Path) -> Job:
    """The job of a fit with QUICK, with trials in this process."""
    return Job(
        data=TableFile(table, "class"),
        options=FitOptions(refit=True, trials=3, only=("knn", "lda"), method="random"),
        folder=FitFolder(Path("train-foretune")),
        transfer=False,
        executor=None,
    )


@pytest.fixture
def fit_with(train: Path, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a job as the command does, with other ways to fit pipelines and to run trials."""

    def run(fit: FitPipeline = refit, site: ExecutorChoice | None = None) -> tuple[int, str, str]:
        code = 0
        try:
            run_job(replace(quick_job(train), fit_pipeline=fit, executor=site))
        except UsageError as mistake:
            print(mistake, file=sys.stderr)
            code = 2
        except KeyboardInterrupt:
            code = 130
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def no_room(*_: object, **__: object) -> Member:
    """Take the place of what fits a pipeline."""
    raise MemoryError("no room")


def few_columns(seed: int = 0) -> pd.DataFrame:
    return mixed_frame(seed=seed)[["number", "letter", "always", "class"]]


@pytest.fixture
def train(tmp_path) -> Path:
    few_columns().to_csv(tmp_path / "train.csv", index=False)
    return tmp_path / "train.csv"


@pytest.fixture(scope="module")
def earlier_fit(tmp_path_factory) -> Path:
    """The folder of one fit, whose files no test may change."""
    folder = tmp_path_factory.mktemp("earlier fit")
    few_columns().to_csv(folder / "train.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETUNE_HOME", str(folder / "home"))
        patch.chdir(folder)
        run_job(quick_job(folder / "train.csv"))
    return folder


@pytest.fixture
def fitted(earlier_fit: Path, tmp_path, train: Path) -> Path:
    """The table, and a copy of what the earlier fit made of it."""
    shutil.copytree(earlier_fit / "train-foretune", tmp_path / "train-foretune")
    return train


def test_the_main_job(foretune, tmp_path) -> None:
    train = tmp_path / "train.csv"
    mixed_frame().drop(columns="amount").to_csv(train, index=False)
    mixed_frame(seed=2).drop(columns="amount").to_csv(tmp_path / "test.csv", index=False)
    code, shown, _ = foretune("fit", train, "--target", "class", "--test", "test.csv", *QUICK)
    assert code == 0
    assert "Best of 3 trials: " in shown
    assert re.search(r"On the test table: log_loss [\d.]+, accuracy [\d.]+, balanced", shown)
    made = tmp_path / "train-foretune"
    assert len(Experience.open(made / "trials.parquet")) == 3
    assert "<title>" in (made / "report.html").read_text()
    new = mixed_frame(20, seed=4).drop(columns=["class", "amount"])
    new.to_csv(tmp_path / "new.csv", index=False)
    code, _, _ = foretune("predict", made / "model.foretune", "new.csv", "-o", "out.csv")
    assert code == 0
    assert set(pd.read_csv("out.csv")["class"]) <= {"high", "low", "middle"}
    code, shown, _ = foretune("experience", "show")
    assert "train" in shown


@pytest.mark.usefixtures("trials_here")
def test_the_same_command_goes_on(foretune, fitted: Path) -> None:
    more = ("--trials", 4, *QUICK[2:])
    code, shown, _ = foretune("fit", fitted, "--target", "class", *more)
    assert code == 0
    assert "Best of 4 trials" in shown
    assert len(Experience.open("train-foretune/trials.parquet")) == 4


@pytest.mark.usefixtures("trials_here")
def test_ctrl_c_before_a_trial_has_ended_is_a_stop(foretune, train: Path, monkeypatch) -> None:
    def interrupted(study, *_, **__):
        study.begin(study.space.sample(1, seed=0).dicts()[0], chosen_by="random")
        raise KeyboardInterrupt

    words = ("fit", train, "--target", "class", *QUICK)
    with monkeypatch.context() as stopping:
        stopping.setattr("foretune.automl.trial_search.tune", interrupted)
        code, _, error = foretune(*words)
    assert code == 130
    assert "Stopped before a trial had ended; the same command goes on.\n" in error
    code, shown, _ = foretune(*words)
    assert code == 0
    assert "Best of 3 trials" in shown


def test_the_help_says_where_the_demo_comes_from(foretune) -> None:
    _, shown, _ = foretune("fit", "--help")
    assert "--demo Use a table of credits that is included." in " ".join(shown.split())


@pytest.mark.usefixtures("trials_here")
def test_the_command_to_predict_can_be_copied(foretune, train: Path, tmp_path) -> None:
    one = ("--trials", 1, *QUICK[2:])
    code, shown, _ = foretune("fit", train, "--target", "class", *one, "-o", "my model")
    assert code == 0
    [line] = [line for line in shown.splitlines() if line.startswith("Predict ")]
    program, *words = shlex.split(line.removeprefix("Predict "))
    assert program == "foretune"
    train.rename("new.csv")
    assert foretune(*words)[0] == 0
    assert Path("predictions.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent.csv", "--target", "class"], "absent.csv"),
        (["train.csv", "--target", "clas"], "did you mean 'class'"),
        (["train.csv"], "no --target"),
        ([], "no table"),
        (["--demo", "--target", "risk"], "leave one of them out"),
        (["train.csv", "--target", "always"], "at least two classes"),
        (["train.csv", "--target", "class", "--metric", "r2"], "must be one of accuracy"),
        (["train.csv", "--target", "class", "--method", "aut"], "did you mean auto"),
        (["train.csv", "--target", "class", "--only", "lgbm"], "'lgbm'"),
        (["train.csv", "--target", "class", "--space", "pipes"], "pipes"),
        (["train.csv", "--target", "class", "--test", "other.csv"], "has no 'class'"),
        (["train.csv", "--target", "class", "--test", "strange.csv"], "'odd' besides"),
        (["train.csv", "--target", "class", "--test", "few.csv"], "'letter' is missing"),
        (["train.csv", "--target", "class", "-o", "train.csv/out"], "is a file"),
        (["train.csv", "--target", "class", "--time", "soon"], "20s"),
        (["train.csv", "--target", "class", "--store", "foo://x"], "must be SQLite"),
        (["train.csv", "--target", "class", "--store", "no/x.db"], "there is no 'no'"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(foretune, train, tmp_path, words, said):
    pd.DataFrame({"letter": ["x"] * 5}).to_csv("other.csv", index=False)
    strange = few_columns()
    strange["class"] = "odd"
    strange.to_csv("strange.csv", index=False)
    few_columns().drop(columns="letter").to_csv("few.csv", index=False)
    before = sorted(path.name for path in tmp_path.iterdir())
    code, _, error = foretune("fit", *words)
    assert code == 2
    assert said in error
    assert "Traceback" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_model_of_another_target_is_not_replaced(foretune, train: Path) -> None:
    made = Path("train-foretune")
    made.mkdir()
    table = mixed_table(Task.CLASSIFICATION)
    [config] = (
        load_shipped_space("pipeline-classification").build(["naive_bayes"]).defaults().dicts()
    )
    model = Model.of(table, [refit(config, table, seed=0)], target="class", metric="accuracy")
    model.save(made / "model.foretune")
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    code, shown, error = foretune("fit", train, "--target", "letter", *QUICK)
    assert (code, shown) == (2, "")
    assert "predicts 'class', and here it is 'letter': choose another folder with -o" in error
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


def test_a_model_that_another_fit_saved_meanwhile_is_not_replaced(fit_with) -> None:
    model = Path("train-foretune/model.foretune")
    [config] = (
        load_shipped_space("pipeline-classification").build(["naive_bayes"]).defaults().dicts()
    )
    table = mixed_table(Task.CLASSIFICATION)
    other = Model.of(table, [refit(config, table, seed=0)], target="letter", metric="accuracy")

    def overtaken(*given: object, **named: object) -> Member:
        other.save(model)
        return refit(*given, **named)

    code, shown, error = fit_with(overtaken)
    assert (code, "Best of" in shown) == (2, False)
    assert "predicts 'letter'" in error
    assert Model.open(model).target == "letter"
    assert not model.with_name("report.html").exists()


def test_trials_are_kept_and_told_of_also_where_no_model_can_be_made(fit_with) -> None:
    code, _, error = fit_with(no_room)
    assert (code, "Traceback" in error) == (2, False)
    assert "none of 3 trials could (MemoryError: no room): choose other" in error
    made = Path("train-foretune")
    assert not (made / "model.foretune").exists()
    assert len(Experience.open(made / "trials.parquet")) == 3
    page = (made / "report.html").read_text()
    assert "No model was made: a model needs a trial that can be fitted" in page
    assert re.search(r"The best of 3 trials reached [^<]*\. No model was made\.<", page)
    assert "foretune predict" not in page
    assert "earlier run" not in page + error


def test_a_model_that_stays_where_no_new_one_can_be_made_is_told_of(fitted, fit_with) -> None:
    model, report = Path("train-foretune/model.foretune"), Path("train-foretune/report.html")
    before = model.read_bytes()
    assert "No model was made" not in report.read_text()
    code, _, error = fit_with(no_room)
    assert (code, model.read_bytes() == before) == (2, True)
    for told in (error, report.read_text()):
        assert "The model of an earlier run stays in its place." in told


@pytest.mark.usefixtures("trials_here")
def test_too_little_memory_to_save_a_model_is_a_mistake_with_a_remedy(
    foretune, train: Path, monkeypatch
) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("foretune.automl.final_model.model.write_model", full)
    code, _, error = foretune("fit", train, "--target", "class", *QUICK)
    assert (code, "Traceback" in error) == (2, False)
    assert "packed in memory, but there was too little of it: choose fewer" in error
    page = Path("train-foretune/report.html").read_text()
    assert "No model was made: a model is put together and packed in memory" in page


def test_ctrl_c_before_a_pipeline_is_fitted_leaves_the_report_of_the_trials(fit_with) -> None:
    def interrupted(*_: object, **__: object) -> Member:
        raise KeyboardInterrupt

    assert fit_with(interrupted)[0] == 130
    made = Path("train-foretune")
    assert "No model was made: stopped before it was" in (made / "report.html").read_text()
    assert not (made / "model.foretune").exists()
    # The same fit goes on: no trial is left to run.
    assert fit_with(refit)[0] == 0
    assert "No model was made" not in (made / "report.html").read_text()


class FailingSite(InlineSite):
    """A site where every trial fails."""

    def pool(self, function: object, *, workers: int, limits: Limits) -> PreparedExecutor:
        return PreparedExecutor(no_score)


def no_score(config: object) -> None:
    raise ValueError("no score")


def test_trials_are_told_of_also_where_none_succeeded(fit_with) -> None:
    code, _, error = fit_with(site=FailingSite())
    assert code == 2
    assert "none of 3 did (ValueError: no score)" in error
    assert "None of 3 trials succeeded." in Path("train-foretune/report.html").read_text()


def test_a_substitute_of_the_best_trial_is_not_called_the_best(fit_with) -> None:
    begun = []

    def fails_once(config: object, *given: object, **named: object) -> Member:
        begun.append(config)
        if len(begun) == 1:
            raise MemoryError("no room")
        return refit(config, *given, **named)

    code, shown, _ = fit_with(fails_once)
    assert (code, "Best usable of 3 trials: " in shown) == (0, True)
    assert re.search(r"Left out of the model: trial \d \(MemoryError: no room\)\.", shown)
    page = Path("train-foretune/report.html").read_text()
    assert "(MemoryError: no room)" in page
    assert "The best usable of 3 trials reached log_loss" in page
    assert Model.open("train-foretune/model.foretune").target == "class"


def test_that_no_trial_beats_a_guess_is_said_of_all_not_of_the_one_that_stands_in(
    fit_with, monkeypatch
) -> None:
    begun = []

    def only_the_last(config: object, *given: object, **named: object) -> Member:
        begun.append(config)
        if len(begun) < 3:
            raise MemoryError("no room")
        return refit(config, *given, **named)

    def guess(table: object, protocol: object) -> float:
        """Between the best trial and the worst."""
        found = Experience.open("train-foretune/trials.parquet")
        return float(np.sort(found.to_frame()["log_loss"])[1])

    monkeypatch.setattr("foretune.automl.baseline.without_columns", guess)
    code, shown, _ = fit_with(only_the_last)
    assert (code, "Best usable of 3 trials: " in shown) == (0, True)
    assert "No trial is better" not in shown


@pytest.mark.usefixtures("trials_here")
def test_a_test_table_of_which_a_part_is_used_is_told_of(
    foretune, train: Path, monkeypatch
) -> None:
    def half(path: Path, most_bytes: int) -> float:
        return 0.5 if path.name == "test.csv" else 1.0

    monkeypatch.setattr("foretune.tables.reading._share", half)
    few_columns(seed=2).to_csv("test.csv", index=False)
    one = ("--trials", 1, *QUICK[2:])
    code, shown, _ = foretune("fit", train, "--target", "class", "--test", "test.csv", *one)
    said = "The test table is larger than 400 MB: a random 50.0% of its rows is used."
    assert (code, said in shown) == (0, True)
    assert said in Path("train-foretune/report.html").read_text()
    assert "The table is larger" not in shown


@pytest.mark.usefixtures("trials_here")
def test_a_model_is_saved_whatever_its_test_table_does(foretune, train: Path, monkeypatch) -> None:
    def fails(*given: object, **more: object) -> float:
        raise UsageError("no score")

    monkeypatch.setattr("foretune.automl.model_scores.scores_on", fails)
    one = ("--trials", 1, *QUICK[2:])
    code, _, error = foretune("fit", train, "--target", "class", "--test", train, *one)
    assert (code, "no score" in error) == (2, True)
    assert Model.open("train-foretune/model.foretune").target == "class"


@pytest.mark.usefixtures("trials_here")
def test_a_damaged_memory_is_one_sentence_and_stops_nothing(foretune, train: Path, tmp_path):
    folder = tmp_path / "home/experience"
    folder.mkdir(parents=True)
    (folder / "pipeline-classification.parquet").write_bytes(b"PAR1 no more")
    one = ("--trials", 1, *QUICK[2:])
    code, _, error = foretune("fit", train, "--target", "class", *one)
    assert code == 0
    [said] = [line for line in error.splitlines() if "damaged" in line]
    assert said.startswith("foretune: the memory of 'pipeline-classification' is damaged")
    assert "Warning" not in error
    code, shown, _ = foretune("experience", "show")
    assert (code, "1 dataset, 1 evaluation" in shown) == (0, True)


def test_three_rows_are_too_few(foretune, tmp_path) -> None:
    pd.DataFrame({"a": [1, 2, 3], "y": ["u", "v", "u"]}).to_csv("tiny.csv", index=False)
    code, _, error = foretune("fit", "tiny.csv", "--target", "y")
    assert code == 2
    assert "at least 10 rows" in error


@pytest.mark.usefixtures("trials_here")
def test_columns_without_a_value_and_infinities_are_lived_with(foretune, tmp_path) -> None:
    frame = mixed_frame()[["number", "never", "amount"]]
    frame["infinite"] = np.where(np.arange(len(frame)) % 7 == 0, np.inf, frame["number"])
    frame.to_csv("odd.csv", index=False)
    code, shown, error = foretune("fit", "odd.csv", "--target", "amount", "--trials", 1, "--only",
                                  "knn", "--method", "random", "--no-transfer")  # fmt: skip
    assert (code, "Traceback" in error) == (0, False)
    assert "r2" in shown


@pytest.mark.usefixtures("trials_here")
def test_text_of_users_is_escaped_in_the_report(foretune, tmp_path) -> None:
    frame = few_columns()
    frame["<script>alert(1)</script>"] = frame["number"]
    frame["class"] = frame["class"].map(lambda name: f"</script><b>{name}")
    frame.to_csv("evil.csv", index=False)
    one = ("--trials", 1, *QUICK[2:])
    code, _, _ = foretune("fit", "evil.csv", "--target", "class", *one)
    assert code == 0
    page = Path("evil-foretune/report.html").read_text()
    assert "<script>alert" not in page
    assert "<b>" not in page


@pytest.mark.usefixtures("fitted")
def test_trials_are_an_optuna_study() -> None:
    [name] = optuna.get_all_study_names("sqlite:///train-foretune/study.db")
    study = optuna.load_study(study_name=name, storage="sqlite:///train-foretune/study.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
    assert study.best_value == min(trial.value for trial in study.trials)
    assert json.dumps(study.best_params)


@pytest.mark.usefixtures("trials_here")
def test_test_tables_and_new_ones_are_read_as_the_table_of_the_fit(foretune, tmp_path) -> None:
    codes = ["01", "02", "TRUE", "1.50"] * 20
    frame = pd.DataFrame({"code": codes, "size": np.arange(80) % 7})
    frame["y"] = frame["code"].map({"01": "05", "02": "05", "1.50": "06", "TRUE": "06"})
    frame.to_csv("train.csv", index=False)
    # Here all codes look like numbers, and classes do in both tables.
    test = frame[frame["code"].isin(["01", "02", "1.50"])]
    test.to_csv("test.csv", index=False)
    only = ("--trials", 1, "--only", "extra_trees", *QUICK[4:])
    code, shown, _ = foretune("fit", "train.csv", "--target", "y", "--test", "test.csv", *only)
    assert code == 0
    assert re.search(r"On the test table: .*, accuracy 1,", shown)
    model = "train-foretune/model.foretune"
    new = frame[frame["code"].isin(["02", "1.50"])]
    new.drop(columns="y").to_csv("new.csv", index=False)
    code, shown, _ = foretune("predict", model, "new.csv", "-o", "out.csv")
    assert code == 0
    assert "did not have" not in shown
    assert pd.read_csv("out.csv", dtype=str)["y"].tolist() == new["y"].tolist()


@pytest.mark.usefixtures("trials_here")
def test_the_accuracy_that_is_told_is_that_of_the_model(foretune, tmp_path) -> None:
    rng = np.random.default_rng(0)
    rare = rng.random(400) < 0.08
    frame = pd.DataFrame({"a": rng.normal(size=400) + rare, "b": rng.normal(size=400)})
    frame.assign(y=np.where(rare, "yes", "no")).to_csv("rare.csv", index=False)
    only = ("--trials", 1, "--only", "lda", *QUICK[4:])
    code, shown, _ = foretune("fit", "rare.csv", "--target", "y", "--test", "rare.csv", *only)
    assert code == 0
    told, tested = (float(each) for each in re.findall(r"balanced_accuracy ([\d.]+)", shown))
    assert told == pytest.approx(tested, abs=0.1)
    recorded = Experience.open("rare-foretune/trials.parquet")
    values = dict(zip([m.name for m in recorded.metrics], recorded.values[0], strict=True))
    assert values["balanced_accuracy"] < told - 0.05
    assert set(values) == {"log_loss", "accuracy", "balanced_accuracy", "auc"}


@pytest.mark.parametrize("given", [["--trials", "4"], ["--trials=4"], []])
def test_the_command_to_go_on_names_its_trials_once(given):
    words = ["fit", "my data.csv", *given, "--target", "y"]
    assert with_trials(words, 8) == "foretune fit 'my data.csv' --target y --trials 8"


@pytest.mark.usefixtures("trials_here")
def test_a_model_is_a_blend_unless_one_pipeline_is_wanted(foretune, train: Path) -> None:
    other = ("--trials", 4, "--only", "knn, naive_bayes", *QUICK[4:])
    code, shown, _ = foretune("fit", train, "--target", "class", *other)
    assert code == 0
    members = Model.open("train-foretune/model.foretune").members
    assert f"The model blends {len(members)} of them: log_loss " in shown
    assert len(members) > 1
    code, shown, _ = foretune("fit", train, "--target", "class", "--ensemble", 1, *other)
    assert (code, "blends" in shown) == (0, False)
    assert len(Model.open("train-foretune/model.foretune").members) == 1


@pytest.mark.usefixtures("trials_here")
def test_a_blend_after_trials_without_predictions_says_why_there_is_none(
    foretune, train: Path
) -> None:
    foretune("fit", train, "--target", "class", "--ensemble", 1, "--refit", *QUICK)
    code, shown, _ = foretune("fit", train, "--target", "class", "--refit", *QUICK)
    assert code == 0
    assert "One pipeline and no blend: the predictions of the best trial were not kept" in shown
    assert "One pipeline and no blend" in Path("train-foretune/report.html").read_text()


def test_a_command_is_reported_without_the_password_of_a_store() -> None:
    typed = ["foretune", "fit", "train.csv", "--store", "postgresql://me:s3cret@db/x"]
    assert command_words(typed)[-1] == "postgresql://me:***@db/x"


@pytest.mark.usefixtures("trials_here")
def test_a_search_that_was_begun_otherwise_is_told_in_the_words_of_fit(
    foretune, fitted: Path
) -> None:
    for other in (("--only", "knn"), ("--seed", 1)):
        code, _, error = foretune("fit", fitted, "--target", "class", *QUICK, *other)
        assert code == 2
        assert "goes on with what it was begun with (--only, --space, --seed" in error
        assert "choose another folder with -o" in error
        assert "name for the study" not in error


def test_help_names_every_metric_and_how_many_pipelines_are_blended(foretune) -> None:
    _, shown, _ = foretune("fit", "--help")
    words = re.split(r"[\s,;:.]+", shown)
    assert set(SCORERS) <= set(words)
    default = f"Default: {DEFAULT_ENSEMBLE}, or {DEFAULT_REFIT_ENSEMBLE} with --refit."
    assert f"the best. {default}" in " ".join(shown.split())


@pytest.mark.usefixtures("trials_here")
def test_rows_that_belong_together_or_follow_each_other(foretune, tmp_path) -> None:
    train = tmp_path / "train.csv"
    mixed_frame()[["number", "town", "day", "note", "class"]].to_csv(train, index=False)
    code, shown, _ = foretune(
        "fit", train, "--target", "class", "--group", "town", "--ignore", "note,day", *QUICK
    )
    assert code == 0
    assert re.search("Not used, as asked for: .*town.*note.*day", shown)
    assert re.search(r"5-fold cross-validation on 90 rows, all of one 'town' together", shown)
    code, shown, _ = foretune("fit", train, "--target", "class", "--order", "day", *QUICK)
    assert code == 0
    assert "the last 45 of 90 rows by 'day', in 3 parts" in shown
    # Both have a search of their own in the same folder, and the last one has the model.
    storage = f"sqlite:///{tmp_path / 'train-foretune' / 'study.db'}"
    assert len(optuna.get_all_study_names(storage)) == 2
    new = mixed_frame(20, seed=4).drop(columns=["class", "amount"])
    new.to_csv("new.csv", index=False)
    code, _, _ = foretune("predict", "train-foretune/model.foretune", "new.csv", "-o", "out.csv")
    assert code == 0


def test_a_group_that_is_not_there(foretune, train: Path) -> None:
    code, _, said = foretune("fit", train, "--target", "class", "--group", "leter", *QUICK)
    assert code == 2
    assert "no 'leter'" in said
    assert "letter" in said
