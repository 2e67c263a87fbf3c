import os
import sys
import warnings
from types import ModuleType, SimpleNamespace

import pytest

from foretune.errors import ForetuneWarning, MissingExtraError
from foretune.experience import Direction, Metric, Status
from foretune.experience.trial import Trial
from foretune.integrations import mlflow_log
from foretune.integrations.mlflow_log import MlflowWatch, log_to_mlflow
from foretune.run.watch import SILENT_WATCH
from tests.refusals import refuses, warns

LOSS = Metric("loss", Direction.MIN)


def trial(number, status=Status.RUNNING, values=None, reason=""):
    return Trial(number, {"lr": 0.1, "kind": "a"}, status, values or {}, 1.0, reason, "random")


class Client:
    """What is called of MLflow's client, written down."""

    def __init__(self):
        self.said = []

    def create_run(self, experiment, run_name, tags):
        self.said.append(("create", experiment, run_name, tags["foretune.metric"]))
        return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

    def log_batch(self, run, params):
        self.said.append(("params", run, {p.key: p.value for p in params}))

    def log_metric(self, run, name, value):
        self.said.append(("metric", run, name, value))

    def set_tag(self, run, name, value):
        self.said.append(("tag", run, name, value))

    def set_terminated(self, run, status):
        self.said.append(("ended", run, status))


def test_trials_of_this_process_are_logged():
    pytest.importorskip("mlflow")
    client = Client()
    watch = MlflowWatch(SILENT_WATCH, mlflow_log._Runs(client, "7", "mine", [LOSS]))
    watch.trial_began(trial(0))
    watch.trial_ended(trial(0, Status.DONE, {"loss": 0.5}))
    watch.trial_began(trial(1))
    watch.trial_ended(trial(1, Status.FAILED, reason="ValueError: no"))
    watch.trial_ended(trial(2, Status.DONE, {"loss": 0.1}))
    watch.trial_began(trial(3))
    watch.close()
    params = {"lr": "0.1", "kind": "a"}
    assert client.said == [
        ("create", "7", "trial 0", "loss:min"),
        ("params", "trial 0", params),
        ("metric", "trial 0", "loss", 0.5),
        ("ended", "trial 0", "FINISHED"),
        ("create", "7", "trial 1", "loss:min"),
        ("params", "trial 1", params),
        ("tag", "trial 1", "foretune.reason", "ValueError: no"),
        ("ended", "trial 1", "FAILED"),
        ("create", "7", "trial 3", "loss:min"),
        ("params", "trial 3", params),
        ("ended", "trial 3", "KILLED"),
    ]


class Deaf:
    def __init__(self, says="nobody there"):
        self.says = says

    def begin(self, trial):
        raise ConnectionError(self.says)

    end = begin

    def close(self):
        raise ConnectionError(self.says)


def test_a_server_that_fails_costs_one_warning():
    heard = []
    shown = SimpleNamespace(trial_began=heard.append, trial_ended=heard.append)
    watch = MlflowWatch(shown, Deaf())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        watch.trial_began(trial(0))
        watch.trial_ended(trial(0, Status.DONE, {"loss": 0.5}))
        watch.close()
    assert "nobody there" in str(said[0].message)
    assert len(said) == 1
    assert [t.status for t in heard] == [Status.RUNNING, Status.DONE]


def test_nothing_is_logged_unless_asked_for(monkeypatch):
    monkeypatch.delenv(mlflow_log.URI_VARIABLE, raising=False)
    with log_to_mlflow(SILENT_WATCH, None, "mine", [LOSS]) as watch:
        assert watch is SILENT_WATCH


def test_without_mlflow_the_environment_only_warns(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    monkeypatch.setenv(mlflow_log.URI_VARIABLE, "sqlite:///x.db")
    with (
        warns("mlflow-not-installed"),
        log_to_mlflow(SILENT_WATCH, None, "mine", [LOSS]) as watch,
    ):
        assert watch is SILENT_WATCH
    with pytest.raises(MissingExtraError):
        log_to_mlflow(SILENT_WATCH, "sqlite:///x.db", "mine", [LOSS]).__enter__()


class UnreachableError(Exception):
    """Stands for MlflowException."""


class Absent:
    """MLflow's client where no server answers; says how patient it was."""

    def __init__(self, uri):
        self.uri = uri

    def get_experiment_by_name(self, name):
        retries = os.environ.get("MLFLOW_HTTP_REQUEST_MAX_RETRIES")
        raise UnreachableError(f"{self.uri} asked again {retries} time(s)")


class Overtaken:
    """MLflow's client where another process creates the experiment after the first look."""

    def __init__(self, uri):
        self.looks = 0

    def get_experiment_by_name(self, name):
        self.looks += 1
        return SimpleNamespace(experiment_id="7") if self.looks > 1 else None

    def create_experiment(self, name):
        raise UnreachableError(f"RESOURCE_ALREADY_EXISTS: Experiment(name={name}) already exists")


@pytest.fixture
def stand_in(monkeypatch):
    """Puts a class in the place of MLflow's client."""

    def put(client):
        mlflow, exceptions = ModuleType("mlflow"), ModuleType("mlflow.exceptions")
        mlflow.MlflowClient, exceptions.MlflowException = client, UnreachableError
        monkeypatch.setitem(sys.modules, "mlflow", mlflow)
        monkeypatch.setitem(sys.modules, "mlflow.exceptions", exceptions)

    return put


def test_a_server_that_does_not_answer_is_given_up_soon(monkeypatch, stand_in):
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    stand_in(Absent)
    with refuses("mlflow-away", value="UnreachableError: http://localhost:9 asked again 1 time(s)"):
        log_to_mlflow(SILENT_WATCH, "http://localhost:9", "mine", [LOSS]).__enter__()
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


def test_an_experiment_that_another_process_creates_meanwhile_is_shared(stand_in):
    stand_in(Overtaken)
    assert mlflow_log._Runs.open("http://localhost:9", "mine", [LOSS])._experiment == "7"


def test_passwords_are_not_shown(stand_in):
    stand_in(Absent)
    with refuses("mlflow-away") as refused:
        log_to_mlflow(SILENT_WATCH, "http://me:secret@localhost:9", "mine", [LOSS]).__enter__()
    assert "secret" not in f"{refused.value} {refused.value.value}"
    watch = MlflowWatch(SILENT_WATCH, Deaf("API request to http://me:secret@localhost:9 failed"))
    with pytest.warns(ForetuneWarning) as said:
        watch.close()
    assert [one.message.rule for one in said] == ["mlflow-incomplete"]
    assert "secret" not in str(said[0].message)
