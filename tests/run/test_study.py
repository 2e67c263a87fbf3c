import math
import multiprocessing
import os
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from foretune._base.databases import hide_passwords
from foretune.errors import UsageError
from foretune.experience import Direction, Metric, Status
from foretune.run import heartbeat
from foretune.space import Space
from foretune.stores.addresses import storage_url
from foretune.stores.optuna.study import check_store
from foretune.stores.studies import open_study
from tests.refusals import refuses, warns
from tests.run.jobs import InterruptedOnce

ERROR = Metric("error")
SPACE = Space.of(
    {
        "lr": (1e-5, 0.3, "log"),
        "layers": (1, 9),
        "size": {"ordinal": [16, 32, 64]},
        "mode": ["a", None, True, 2.5],
        "shape": [(1, 2), (3, 4)],
        "fixed": "same",
        "model": {"svm": {"C": (0.1, 10.0)}, "naive": {}},
    }
)
CONFIGS = SPACE.sample(16, seed=0).dicts()


def opened(url, *, space=SPACE, metrics=(ERROR,), settings=None, name="study"):
    return open_study(url, name, space=space, metrics=metrics, settings=settings or {})


@pytest.fixture(params=["memory", "sqlite"])
def study(request):
    with opened(None if request.param == "memory" else request.getfixturevalue("url")) as made:
        yield made


def finish(study, number, error=0.5):
    study.end(number, status=Status.DONE, values={"error": error}, seconds=1.5)


def test_a_trial_is_seen_from_its_beginning_to_its_end(study):
    number = study.begin(CONFIGS[0], chosen_by="random")
    (running,) = study.trials()
    assert (running.number, running.config, running.status) == (number, CONFIGS[0], Status.RUNNING)
    assert running.chosen_by == "random"
    assert math.isnan(running.seconds)
    values = {"error": 0.1 + 0.2, "also": 7.0}
    notes = {"folds": [1.0, 2.5]}
    study.end(number, status=Status.DONE, values=values, seconds=2.5, notes=notes)
    (ended,) = study.trials()
    assert (ended.status, ended.values, ended.seconds) == (Status.DONE, values, 2.5)
    assert (ended.notes, ended.reason, ended.chosen_by) == (notes, "", "random")


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMEOUT])
def test_failures_keep_their_reason(study, status):
    number = study.begin(CONFIGS[0], chosen_by="")
    study.end(number, status=status, seconds=3.0, reason="it burnt")
    (ended,) = study.trials()
    assert (ended.status, ended.values, ended.reason) == (status, {}, "it burnt")


def test_configurations_come_back_as_they_were(url):
    with opened(url) as study:
        for config in CONFIGS:
            finish(study, study.begin(config, chosen_by="random"))
    with opened(url) as study:
        kept = [trial.config for trial in study.trials()]
    assert [repr(config) for config in kept] == [repr(config) for config in CONFIGS]


def test_a_released_trial_waits_until_it_is_taken_over(study):
    first, second = (study.begin(config, chosen_by="random") for config in CONFIGS[:2])
    assert study.abandoned_trials() == []
    study.let_go(first)
    assert [trial.number for trial in study.abandoned_trials()] == [first]
    study.take_over(first)
    assert study.abandoned_trials() == []
    finish(study, first)
    finish(study, second)
    assert [trial.status for trial in study.trials()] == [Status.DONE, Status.DONE]
    assert "abandoned" not in study.trials()[0].notes


def test_closing_leaves_running_trials_to_the_next(url):
    with opened(url) as study:
        study.begin(CONFIGS[0], chosen_by="random")
    with opened(url) as study:
        assert [trial.config for trial in study.abandoned_trials()] == [CONFIGS[0]]


def test_others_see_a_trial_at_once_and_leave_it_alone(url):
    with opened(url) as one, opened(url) as other:
        number = one.begin(CONFIGS[0], chosen_by="random")
        assert [trial.status for trial in other.trials()] == [Status.RUNNING]
        assert other.abandoned_trials() == other.unsure() == []
        finish(one, number)
        assert [trial.status for trial in other.trials()] == [Status.DONE]


def begin_and_die(url):
    opened(url).begin(CONFIGS[0], chosen_by="random")
    os.kill(os.getpid(), signal.SIGKILL)


def test_trials_of_a_killed_process_are_run_again_under_their_number(url):
    process = multiprocessing.get_context("fork").Process(target=begin_and_die, args=(url,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with opened(url) as study:
        (left,) = study.abandoned_trials()
        study.take_over(left.number)
        assert study.abandoned_trials() == []
        finish(study, left.number)
        (ended,) = study.trials()
    assert (ended.number, ended.status) == (0, Status.DONE)
    assert ended.notes == {"abandoned": 1}


def test_reports_of_a_killed_process_do_not_count_for_the_next_run(url):
    with opened(url) as study:
        number = study.begin(CONFIGS[0], chosen_by="random")
        study._storage = InterruptedOnce(study._storage, "set_trial_state_values")
        with pytest.raises(KeyboardInterrupt):
            study.end(
                number, status=Status.TIMEOUT, values={"size": 3.0}, seconds=9.0,
                reason="too slow", notes={"fold": 1},
            )  # fmt: skip
        study._held.clear()
        (left,) = study.abandoned_trials()
        study.take_over(left.number)
        study.end(number, status=Status.FAILED)
        (ended,) = study.trials()
    assert (ended.status, ended.values, ended.reason) == (Status.FAILED, {}, "")
    assert math.isnan(ended.seconds)
    assert ended.notes == {"abandoned": 1}


def test_a_process_that_took_the_number_of_a_dead_one_is_not_it():
    here = heartbeat.Owner.new()
    assert here.is_running_here()
    assert not replace(here, started="before").is_running_here()
    assert not replace(here, machine="elsewhere").is_running_here()


@pytest.fixture
def abroad(url):
    """A study opened on another machine, as far as others can tell."""
    with opened(url) as study:
        study._owner = replace(study._owner, machine="elsewhere")
        yield study


def test_processes_of_other_machines_live_as_long_as_their_heart_beats(abroad, url):
    number = abroad.begin(CONFIGS[0], chosen_by="random")
    with opened(url) as here:
        assert [trial.number for trial in here.unsure()] == [number]
        assert here.abandoned_trials() == []
        abroad._beat()
        assert here.unsure() == here.abandoned_trials() == []
        here._witness.grace = -1.0
        assert [trial.number for trial in here.abandoned_trials()] == [number]
        here.take_over(number)
        finish(abroad, number, error=9.0)  # it lives after all, but comes too late
        assert here.trials()[0].status is Status.RUNNING
        finish(here, number, error=1.0)
        assert abroad.trials()[0].values == {"error": 1.0}


def test_threads_share_a_study(url):
    with opened(url) as study:

        def work(part):
            for config in part:
                finish(study, study.begin(config, chosen_by="random"))

        threads = [threading.Thread(target=work, args=(CONFIGS[i::4],)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        trials = study.trials()
    assert [trial.number for trial in trials] == list(range(len(CONFIGS)))
    assert {trial.status for trial in trials} == {Status.DONE}


def test_optuna_reads_along(url):
    optuna = pytest.importorskip("optuna")
    metric = Metric("accuracy", Direction.MAX)
    with opened(url, metrics=[metric]) as study:
        number = study.begin(CONFIGS[0], chosen_by="random")
        study.end(number, status=Status.DONE, values={"accuracy": 0.75}, seconds=1.0)
        study.let_go(study.begin(CONFIGS[1], chosen_by="random"))
    found = optuna.load_study(study_name="study", storage=url)
    assert (found.best_value, found.direction.name) == (0.75, "MAXIMIZE")
    assert found.metric_names == ["accuracy"]
    assert found.best_params["lr"] == CONFIGS[0]["lr"]
    assert set(found.best_params) == set(CONFIGS[0])
    assert found.best_trial.distributions["layers"] == optuna.distributions.IntDistribution(1, 9)
    assert [trial.state.name for trial in found.trials] == ["COMPLETE", "WAITING"]


OTHERS = (
    ({"metrics": [Metric("loss")]}, "the metric is error:min, and here loss:min"),
    ({"metrics": [Metric("error", Direction.MAX)]}, "error:min, and here error:max"),
    ({"settings": {"folds": 5}}, "the setting 'folds' is 3, and here it is 5"),
    ({"settings": {}}, "the setting 'folds' is 3, and here it is absent"),
    ({"space": Space.of({"lr": (0.0, 1.0)})}, "'fixed' is constant {'same'}, and here it is"),
)


def test_who_joins_must_agree(url):
    opened(url, settings={"folds": 3}).close()
    for other, said in OTHERS:
        with pytest.raises(UsageError) as refused:
            opened(url, **{"settings": {"folds": 3}, **other})
        assert said in str(refused.value)


LOSS = Metric("loss", Direction.MAX)


def failed(study, config):
    study.end(study.begin(config, chosen_by="random"), status=Status.FAILED, reason="no error")


def test_a_study_in_which_nothing_succeeded_is_begun_anew_with_another_metric(url):
    with opened(url) as study:
        failed(study, CONFIGS[0])
        study.let_go(study.begin(CONFIGS[1], chosen_by="random"))
    with refuses("other-study", field="metrics"):
        opened(url, metrics=[LOSS], settings={"folds": 5})
    with warns("study-begun-anew", value="study"):
        again = opened(url, metrics=[LOSS])
    with again as study:
        assert study.trials() == []
        number = study.begin(CONFIGS[0], chosen_by="random")
        study.end(number, status=Status.DONE, values={"loss": 1.0})
    with refuses("other-study", field="metrics"):
        opened(url)


def test_a_study_that_others_work_on_is_not_begun_anew(url):
    with opened(url) as study:
        failed(study, CONFIGS[0])
        study.begin(CONFIGS[1], chosen_by="random")
        with refuses("other-study", field="metrics"):
            opened(url, metrics=[LOSS])


def test_a_trial_that_is_done_has_a_number_for_each_metric(study):
    number = study.begin(CONFIGS[0], chosen_by="random")
    wrong = [math.nan, math.inf, None, "0.5", True]
    for values in ({"other": 1.0}, *({"error": value} for value in wrong)):
        with refuses("missing-value", field="error"):
            study.end(number, status=Status.DONE, values=values)
    assert [trial.status for trial in study.trials()] == [Status.RUNNING]
    study.end(number, status=Status.FAILED, values={"other": 1.0})
    assert study.trials()[0].values == {"other": 1.0}


def test_only_what_is_running_here_can_be_ended(study):
    number = study.begin(CONFIGS[0], chosen_by="random")
    finish(study, number)
    for ended in (number, 77):
        with refuses("trial-not-running", value=ended):
            finish(study, ended)


def test_only_what_has_not_ended_can_be_taken_over(study):
    finish(study, study.begin(CONFIGS[0], chosen_by="random"))
    study.let_go(study.begin(CONFIGS[1], chosen_by="random"))
    for number in (0, 66):
        with refuses("trial-ended", value=number):
            study.take_over(number)
    assert study.take_over(1) == 0


def test_foreign_errors_under_the_lock_are_not_storage_errors(study):
    with pytest.raises(RuntimeError, match="mine"), study.lock():
        raise RuntimeError("mine")


def test_a_store_of_another_version_of_optuna_is_one_clear_error(url, tmp_path):
    opened(url).close()
    with closing(sqlite3.connect(tmp_path / "study.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'v0.9.0.a'")
    with refuses("store-refused"):
        opened(url)


def test_studies_of_other_programs_are_left_alone(url):
    optuna = pytest.importorskip("optuna")
    with opened(url):
        optuna.create_study(storage=url, study_name="theirs").ask()
    with refuses("foreign-study", value="theirs"):
        opened(url, name="theirs")


def test_a_study_that_is_deleted_meanwhile_is_one_clear_error(url):
    optuna = pytest.importorskip("optuna")
    with opened(url) as study:
        number = study.begin(CONFIGS[0], chosen_by="random")
        optuna.delete_study(storage=url, study_name="study")
        with refuses("study-deleted"):
            study.end(number, status=Status.DONE, values={"error": 1.0})
        with refuses("study-deleted"):
            study.trials()


@pytest.mark.parametrize("directions", [["maximize"], ["minimize", "minimize"]])
def test_an_empty_study_of_another_program_must_have_the_same_direction(url, directions):
    optuna = pytest.importorskip("optuna")
    with opened(url):
        optuna.create_study(storage=url, study_name="theirs", directions=directions)
    with refuses("other-direction", value=(directions, ["minimize"])):
        opened(url, name="theirs")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("s.db", "sqlite:///{tmp}/s.db"),
        ("./s.sqlite3", "sqlite:///{tmp}/s.sqlite3"),
        ("sqlite:///s.any?timeout=9", "sqlite:///{tmp}/s.any?timeout=9"),
        ("sqlite:///{tmp}/s.db", "sqlite:///{tmp}/s.db"),
        ("postgresql+psycopg://me@host/x", "postgresql+psycopg://me@host/x"),
    ],
)
def test_stores_are_written_as_paths_or_urls(tmp_path, monkeypatch, given, url):
    monkeypatch.chdir(tmp_path)
    assert storage_url(given.format(tmp=tmp_path)) == url.format(tmp=tmp_path)


def test_a_study_whose_name_no_store_can_hold_is_refused(url):
    with refuses("half-character"):
        opened(url, name="caf\udce9")


@pytest.mark.parametrize(
    ("folder", "name"),
    [("p%20c", "a#b run%41.db"), ("{a} o+ö:@", "wh?t.db")],
)
def test_a_study_lies_in_the_file_that_was_named(tmp_path, monkeypatch, folder, name):
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    with opened(name) as study:
        number = study.begin(CONFIGS[0], chosen_by="random")
        study.end(number, status=Status.DONE, values={"error": 1.0})
        assert (tmp_path / folder / f"{name}-wal").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert {path.name for path in Path.cwd().iterdir()} == {name, f"{name}.lock"}
    with opened(study.url) as again:
        assert len(again.trials()) == 1


def test_a_path_that_no_url_can_hold_is_refused(tmp_path, monkeypatch):
    engine = pytest.importorskip("sqlalchemy.engine")
    glued = lambda url, **_: f"sqlite:///{url.database}"  # noqa: E731, as before SQLAlchemy 2.1
    monkeypatch.setattr(engine.URL, "render_as_string", glued)
    with pytest.raises(UsageError, match="must be one that a URL can hold"):
        opened(f"{tmp_path}/wh?t.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "password", ["se:cret", "p@ss", "p/ss", "p@s/s", "p?s@s", "p s", "1 @", ""]
)
@pytest.mark.parametrize("user", ["", "me", "me@there"])
def test_passwords_are_not_shown(user, password):
    url = f"postgresql://{user}:{password}@host:5/x"
    assert hide_passwords(url) == f"postgresql://{user}:***@host:5/x"


def test_passwords_among_the_settings_of_an_address_are_not_shown():
    url = "postgresql://host/x?user=me&password=s3cret&sslmode=require"
    assert hide_passwords(url) == "postgresql://host/x?user=me&password=***&sslmode=require"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "a request to http://localhost:9/api failed: no permission for bob@corp.com (403)",
            "a request to http://localhost:9/api failed: no permission for bob@corp.com (403)",
        ),
        (
            "neither (http://me:p@ss@host:9/a) nor mysql://me:pass@host/x answers bob@corp.com",
            "neither (http://me:***@host:9/a) nor mysql://me:***@host/x answers bob@corp.com",
        ),
        (
            "a request to http://me:my secret@host:9/a failed for bob@corp.com",
            "a request to http://me:***@host:9/a failed for bob@corp.com",
        ),
        (
            "at mysql://host/x?password=s3cret&a=b and mysql://host/x?password=s3cret no one is",
            "at mysql://host/x?password=***&a=b and mysql://host/x?password=*** no one is",
        ),
    ],
)
def test_in_a_sentence_passwords_alone_are_hidden(said, expected):
    assert hide_passwords(said) == expected


@pytest.mark.parametrize(
    "url", ["postgresql://me@host:5/x", "mysql://host/x?a=b", "sqlite:////folder/a@b.db"]
)
def test_urls_without_a_password_are_shown_as_they_are(url):
    assert hide_passwords(url) == url


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("study.txt", "or the path of an SQLite file"),
        ("oracle://host/x", "must be SQLite, PostgreSQL or MySQL"),
        ("sqlite:///{tmp}/nowhere/study.db", "there is no"),
        ("sqlite:///:memory:", "needs a file"),
        ("sqlite:///", "needs a file"),
        ("sqlite://", "must be written as sqlite:///PATH"),
        ("sqlite://study.db", "must be written as sqlite:///PATH"),
        ("{tmp}/noise.db", "an SQLite file"),
        ("{tmp}/folder.db", "is a folder"),
        ("{tmp}/torn.db", "is damaged (database disk image is malformed)"),
        ("postgresql+nodriver://me:secret@localhost/x", "must be within reach"),
        ("mysql+mysqlconnector://me:secret@localhost/x", "needs a database driver"),
    ],
)
def test_stores_that_cannot_be_are_refused_in_a_sentence(tmp_path, empty_store, given, said):
    (tmp_path / "noise.db").write_text("no database")
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "torn.db").write_bytes(empty_store.read_bytes()[:3000])
    before = sorted(tmp_path.iterdir())
    for refuse in (check_store, opened):
        with pytest.raises(UsageError) as refused:
            refuse(given.format(tmp=tmp_path))
        assert said in str(refused.value)
        assert "secret" not in str(refused.value)
        assert sorted(tmp_path.iterdir()) == before


def test_a_store_that_can_be_is_not_made_by_looking(tmp_path):
    check_store(f"{tmp_path}/new.db")
    assert not list(tmp_path.iterdir())


def test_memory_needs_no_optuna_and_files_say_that_they_do(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    opened(None).close()
    with refuses("missing-extra", field="optuna"):
        opened(url)
