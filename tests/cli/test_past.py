"""Past runs from files and stores, as `foretune tune` reads them."""

import os
import sys
from pathlib import Path

import pytest

from foretune.cli.past_run_alignment import carry_over_past
from foretune.cli.past_run_names import rename
from foretune.cli.past_runs import check_out_is_not_source, open_past_runs
from foretune.errors import ExperienceError, MissingExtraError, UsageError
from foretune.experience import Direction, Experience, Metric, Status
from foretune.space import Space
from foretune.stores.studies import open_study
from tests.refusals import refuses

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = Space.of({"x": (0.0, 1.0), "layers": [(8,), (8, 8)]})
LOSS = Metric("loss")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(store, name, n=4, *, seed=0, space=SPACE, metric=LOSS, failed=False):
    """A study whose trials found `x` as their loss."""
    with open_study(store, name, space=space, metrics=[metric]) as study:
        for config in space.sample(n, seed=seed).dicts():
            number = study.begin(config, chosen_by="")
            status = Status.FAILED if failed and config["x"] < 0.5 else Status.DONE
            values = {metric.name: config["x"]} if status is Status.DONE else {}
            study.end(number, status=status, values=values)


def save(path, tasks, *, seed=0, space=SPACE, metric=LOSS):
    n = len(tasks)
    configs = space.sample(4 * n, seed=seed)
    losses = [config["x"] for config in configs.dicts()]
    index = [task for task in range(n) for _ in range(4)]
    Experience.build(space, [metric], tasks, index, configs, range(4 * n), losses).save(path)


def read(
    *sources, study="new", store="new.db", space=SPACE, metrics=(LOSS,), assumed=(), renamed=()
):
    past = open_past_runs(sources, store=store, study=study)
    rename(past, renamed)
    return carry_over_past(past, space, metrics, assumed)


def test_own_studies_with_lists_as_choices_are_learnt_from():
    keep("own.db", "a")
    found = read("own.db")
    assert found.is_whole
    assert {each["layers"] for each in found.experience.configs.dicts()} <= {(8,), (8, 8)}
    assert found.experience.space == SPACE


OWN = ["own.db", "./own.db", "sub/../own.db", "link.db", "sqlite:///own.db?timeout=5"]


def test_the_study_that_is_tuned_is_no_past_task_of_itself(here):
    (here / "sub").mkdir()
    (here / "link.db").symlink_to("own.db")
    keep("own.db", "a", 1)
    keep("own.db", "new", 1, seed=1)
    for source in [*OWN, "sqlite+pysqlite:///own.db"]:
        for store in OWN:
            [past] = open_past_runs([source], store=store, study="new").parts
            assert past.experience.tasks == ("a",), (source, store)
    assert read("own.db", store="other.db").experience.tasks == ("a", "new")


def test_the_first_study_of_a_store_has_no_past(here, capsys):
    assert read("own.db", store="./own.db") is None
    (here / "own.db").touch()
    assert read("./own.db", store="own.db") is None
    assert capsys.readouterr().err == ""


def test_a_source_that_is_given_twice_is_read_once(here, monkeypatch, capsys):
    keep("own.db", "a")
    save("past.parquet", ["b"])
    os.link("past.parquet", "same.parquet")
    for order in (1, -1):
        sources = ["own.db", "sqlite:///own.db", "past.parquet", "./past.parquet", "same.parquet"]
        assert len(open_past_runs(sources[::order], store="new.db", study="new").parts) == 2
        found = read(*sources[::order])
        assert (found.runs, found.tasks) == (8, 2)
        assert sorted(found.experience.tasks) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_runs_that_are_in_a_store_and_in_a_file_count_once(capsys):
    keep("own.db", "a", seed=0)
    save("past.parquet", ["a"], seed=0)
    changed = Space.of({"x": (0.0, 2.0), "layers": [(8,), (8, 8)], "new": (0, 1)})
    for sources in (("own.db", "past.parquet"), ("past.parquet", "own.db")):
        found = read(*sources, space=changed)
        assert (len(found.experience), found.runs, found.tasks) == (4, 4, 1)
        assert "4 of 4 (of 1 of 1 tasks) are used" in capsys.readouterr().err


def test_tasks_that_only_share_a_name_are_different_ones():
    save("one.parquet", ["t"])
    save("two.parquet", ["t"], seed=1)
    keep("own.db", "t", seed=2)
    for sources in (
        ("one.parquet", "two.parquet", "own.db"),
        ("own.db", "two.parquet", "one.parquet"),
    ):
        assert read(*sources).experience.tasks == ("t", "t (own.db)", "t (two.parquet)")


def test_a_name_with_its_source_tells_no_password(monkeypatch):
    save("one.parquet", ["t"])
    save("two.parquet", ["t"], seed=1)
    known = Experience.open("two.parquet")
    monkeypatch.setattr(
        "foretune.stores.optuna.study_reader.read_each", lambda *_, **__: {"t": known}
    )
    found = read("one.parquet", "postgresql://me:secret@host/db")
    assert found.experience.tasks == ("t", "t (postgresql://me:***@host/db)")


def test_studies_that_do_not_fit_are_counted_and_one_is_named_for_each_reason(here, capsys):
    keep("own.db", "good")
    keep("own.db", "bad", metric=Metric("loss", Direction.MAX))
    keep("own.db", "alien", space=Space.of({"y": (0.0, 1.0), "x": [0.1, 0.2]}))
    odd = optuna.create_study(storage="sqlite:///own.db", study_name="odd")
    odd.optimize(lambda trial: float(trial.suggest_int("seed", 0, 2**60)), n_trials=2)
    found = read("own.db", space=Space.of({"x": (0.5, 1.0), "layers": [(8,), (8, 8)]}))
    assert found.experience.tasks == ("good",)
    said = capsys.readouterr().err
    for name, why in (
        ("odd", "integer hyperparameter 'seed' must"),
        ("bad", "past runs must mean the same by 'loss'"),
        ("alien", ""),
    ):
        assert f"1 past study does not fit, such as '{name}': {why}" in said


def test_the_most_frequent_reason_for_unfitting_studies_comes_first(here, capsys):
    for number in range(4):
        optuna.create_study(storage="sqlite:///past.db", study_name=f"empty{number}")
    for name in "abcde":
        nameless("past.db", name, ("maximize",))
    assert read("past.db", space=X) is None
    reasons = [line for line in capsys.readouterr().err.splitlines() if "not fit" in line]
    assert reasons[0].startswith("5 past studies do not fit, such as 'a': past runs must mean the")
    assert "there is none in 'past.db' (looked at 'empty0')" in reasons[1]
    assert reasons[3] == "2 past studies do not fit for other reasons: 'empty2', 'empty3'."
    assert len(reasons) == 4


def test_a_study_that_has_failed_wherever_it_counts_does_not_fit(capsys):
    keep("own.db", "good")
    keep("own.db", "bad", failed=True)
    found = read("own.db", space=Space.of({"x": (0.0, 0.5), "layers": [(8,), (8, 8)]}))
    assert found.experience.tasks == ("good",)
    assert "'bad': an experience must hold runs that have succeeded" in capsys.readouterr().err


@pytest.mark.parametrize("order", [1, -1])
def test_the_file_that_does_not_fit_is_named(order):
    save("one.parquet", ["t"])
    save("two.parquet", ["u"], metric=Metric("cost"))
    with refuses("source-does-not-fit", field="two.parquet"):
        read(*["one.parquet", "two.parquet"][::order])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "there is no 'x.db': correct its path, or leave it out"),
        ("", "'x.db' is empty: name another"),
        ("garbage", "neither a database nor a journal; name another"),
    ],
)
def test_a_source_without_past_runs_is_refused(here, made, said):
    if made is not None:
        (here / "x.db").write_text(made)
    with pytest.raises(ExperienceError) as refused:
        read("x.db")
    assert said in str(refused.value)
    assert "import" not in str(refused.value)
    assert (here / "x.db").exists() == (made is not None)
    with refuses("no-such-file", value="x.parquet"):
        read("x.parquet")


def test_a_store_without_studies_is_said(capsys):
    optuna.create_study(storage="sqlite:///none.db", study_name="a")
    optuna.delete_study(storage="sqlite:///none.db", study_name="a")
    assert read("none.db") is None
    assert "There are no studies in none.db to learn from." in capsys.readouterr().err


@pytest.mark.parametrize("value", ["{[]:1}", "(" * 300, "1e999", "9" * 5000])
def test_values_that_nobody_can_read_are_refused(value):
    save("past.parquet", ["t"])
    space = Space.of({"x": (0.0, 1.0), "drop": (0.0, 1.0)})
    with refuses("assumed-value-outside", field="drop"):
        read("past.parquet", space=space, assumed=[f"drop={value}"])


def test_unneeded_assumptions_are_checked_too():
    keep("own.db", "a", metric=Metric("cost"))
    with pytest.raises(ExperienceError, match="but got 'lay'"):
        read("own.db", assumed=["lay=1"])


def test_unused_assumptions_are_named(capsys):
    save("past.parquet", ["t"])
    read("past.parquet", assumed=["x=0.5"])
    said = "--assume of 'x' changes nothing: past runs have recorded a value."
    assert capsys.readouterr().err.strip() == said


def test_repeated_assumptions_are_refused():
    save("past.parquet", ["t"])
    with refuses("assumed-twice", value="x"):
        read("past.parquet", assumed=["x=0.5", "x=0.5"])


def test_studies_from_before_a_hyperparameter_was_renamed_are_used_as_those_from_after(capsys):
    before = Space.of({"x": (0.0, 1.0), "depth": [(8,), (8, 8)]})
    keep("own.db", "before", space=before)
    keep("own.db", "after", seed=1)
    assert len(read("own.db").experience) == 8
    said = capsys.readouterr().err
    assert "their values of 'depth' are ignored" in said
    found = read("own.db", renamed=["depth=layers"])
    assert found.is_whole
    assert found.experience.tasks == ("after", "before")
    assert capsys.readouterr().err == ""


def test_how_to_tell_another_name_is_said(capsys):
    save("past.parquet", ["t"], space=Space.of({"x": (0.0, 1.0), "depth": (1, 5)}))
    read("past.parquet", space=Space.of({"x": (0.0, 1.0), "levels": (1, 5)}))
    said = capsys.readouterr().err
    assert "; give the value they used with --assume NAME=VALUE, or its old name" in said


def test_choices_of_past_runs_may_have_another_name_now(capsys):
    before = Space.of({"x": (0.0, 1.0), "opt": ["adam", "sgd"], "layers": [(8,), 16]})
    today = Space.of({"x": (0.0, 1.0), "opt": ["Adam", "sgd"], "layers": [8, 16]})
    save("past.parquet", ["t"], space=before)
    save("both.parquet", ["u"], space=today)
    found = read("past.parquet", "both.parquet", space=today)
    assert len(found.experience) < found.runs
    said = capsys.readouterr().err
    assert "; give a choice its new name with --rename layers:OLD=NEW." in said
    words = ["opt:adam=Adam", "layers:(8,)=8"]
    found = read("past.parquet", "both.parquet", space=today, renamed=words)
    assert found.is_whole
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("renamed", "said"),
    [
        (["x"], "write OLD=NEW"),
        (["x="], "write OLD=NEW"),
        (["=x"], "write OLD=NEW"),
        (["x=a", "x=b"], "but got 'x' twice"),
        (["layer=depth"], "none has 'layer': did you mean 'layers'?"),
        (["layers:(9,)=9"], "none has 'layers:(9,)': did you mean 'layers:(8,)'"),
    ],
)
def test_impossible_renamings_are_refused(renamed, said):
    save("past.parquet", ["t"])
    with pytest.raises(UsageError) as refused:
        read("past.parquet", renamed=renamed)
    assert said in str(refused.value)


def test_a_name_that_past_runs_have_already_is_refused_of_a_file_and_leaves_a_study_out(capsys):
    save("past.parquet", ["t"])
    with refuses("source-does-not-fit", field="past.parquet"):
        read("past.parquet", renamed=["layers=x"])
    keep("own.db", "a")
    assert read("own.db", renamed=["layers=x"]) is None
    assert "such as 'a': names of past runs cannot be changed so" in capsys.readouterr().err


def test_a_table_is_not_taken_for_a_store():
    Path("runs.csv").write_text("dataset,x,loss\na,0.5,1\n")
    with refuses("table-not-experience", value="runs.csv"):
        open_past_runs(["runs.csv"], store="new.db", study="a")


def test_past_runs_are_not_written_over():
    save("past.parquet", ["t"])
    os.link("past.parquet", "same.parquet")
    for out in ("past.parquet", "same.parquet"):
        with refuses("output-is-source", value=out):
            check_out_is_not_source(Path(out), ["own.db", "./past.parquet"])
    check_out_is_not_source(Path("new.parquet"), ["own.db", "past.parquet"])


def test_studies_are_not_read_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError):
        open_past_runs(["postgresql://host/db"], store="new.db", study="a")


def nameless(store, name, directions=("minimize",)):
    """A study of a program that knows Optuna alone, which asks for no names."""
    study = optuna.create_study(
        storage=f"sqlite:///{store}", study_name=name, directions=directions
    )
    study.optimize(lambda trial: [trial.suggest_float("x", 0.0, 1.0)] * len(directions), n_trials=3)


X = Space.of({"x": (0.0, 1.0)})


def test_studies_that_name_no_metric_are_taken_to_measure_what_is_tuned(capsys):
    nameless("past.db", "a")
    nameless("past.db", "b")
    nameless("past.db", "many", ("minimize", "maximize"))
    found = read("past.db", space=X).experience
    assert found.tasks == ("a", "b")
    assert found.metrics == (LOSS,)
    said = capsys.readouterr().err
    assert "2 past studies do not name a metric: taken for 'loss'." in said
    assert "1 past study does not fit, such as 'many'" in said


def test_studies_without_names_that_do_not_fit_are_not_counted(capsys):
    nameless("past.db", "a")
    nameless("past.db", "up", ("maximize",))
    other = optuna.create_study(storage="sqlite:///past.db", study_name="other")
    other.optimize(lambda trial: trial.suggest_float("y", 0.0, 1.0), n_trials=2)
    assert read("past.db", space=X).experience.tasks == ("a",)
    said = capsys.readouterr().err
    assert "1 past study does not name a metric: taken for 'loss'." in said


def test_nothing_is_said_of_names_that_are_those_without_one(capsys):
    nameless("past.db", "a")
    assert read("past.db", space=X, metrics=(Metric("value"),)).experience.tasks == ("a",)
    assert "not name" not in capsys.readouterr().err


def test_several_objectives_without_names_are_taken_in_their_order(capsys):
    metrics = (LOSS, Metric("gain", Direction.MAX))
    nameless("past.db", "a", ("minimize", "maximize"))
    nameless("past.db", "turned", ("maximize", "minimize"))
    found = read("past.db", space=X, metrics=metrics).experience
    assert (found.tasks, found.metrics) == (("a",), metrics)
    assert "past runs must mean the same by 'loss'" in capsys.readouterr().err


def test_a_metric_that_a_file_does_not_name_stays_unknown():
    save("past.parquet", ["a"], metric=Metric("value"))
    with refuses("source-does-not-fit", field="past.parquet"):
        read("past.parquet")
