import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from foretune.errors import ExperienceError
from foretune.experience import Status
from foretune.stores.files.dropped_rows import NOT_ENDED
from foretune.stores.formats import TableColumns
from foretune.stores.mlflow import reader as importer
from tests.refusals import refuses, warns

LOSS = TableColumns(values={"loss": "min"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-1", -1),
        ("0.1", 0.1),
        ("1e-05", 1e-05),
        ("True", True),
        ("None", None),
        ("relu", "relu"),
        ("[1, 2]", "[1, 2]"),
        ("1.", 1.0),
        (".5", 0.5),
        ("+2E3", 2000.0),
        ("-inf", float("-inf")),
        ("64_64", "64_64"),
        ("2024_01", "2024_01"),
        ("1_0.5", "1_0.5"),
        ("1e1_0", "1e1_0"),
    ],
)
def test_parameters_are_read_back_as_what_they_were(text, value):
    run = importer._run(tracked({"x": text}, {}), "mine", None)
    found = run.config.get("x")
    assert (found, type(found)) == (value, type(value))
    assert run.nothing == ({"x"} if value is None else set())


def test_logged_nan_is_missing():
    """As XGBoost's `missing` is."""
    run = importer._run(tracked({"missing": "nan", "depth": "3"}, {}), "mine", None)
    assert (run.config, run.nothing) == ({"depth": 3}, {"missing"})


def tracked(params, metrics, *, status="FINISHED", tags=None):
    info = SimpleNamespace(run_id="r1", status=status, start_time=1000, end_time=3500)
    data = SimpleNamespace(params=params, metrics=metrics, tags=tags or {})
    return SimpleNamespace(info=info, data=data)


def test_a_run_with_its_task():
    run = importer._run(tracked({"lr": "0.1", "set": "iris"}, {"loss": 2.0}), "mine", "set")
    assert (run.task, run.config, run.values) == ("iris", {"lr": 0.1}, {"loss": 2.0})
    assert (run.seconds, run.failed) == (2.5, False)
    assert importer._run(tracked({}, {}, tags={"set": "wine"}), "mine", "set").task == "wine"
    assert importer._run(tracked({}, {}, status="KILLED"), "mine", None).failed
    assert not importer._run(tracked({}, {}, status="RUNNING"), "mine", "set").ended
    with refuses("run-without-task", field="set", value="r1"):
        importer._run(tracked({}, {}), "mine", "set")


def test_a_failed_run_that_names_no_task_is_told_in_part():
    run = importer._run(tracked({"lr": "0.1"}, {}, status="FAILED"), "mine", "set")
    assert (run.task, run.config, run.ended, run.failed) == ("mine", {}, True, True)


def test_without_mlflow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with refuses("missing-extra", field="mlflow"):
        importer.read("sqlite:///x.db", columns=LOSS)


class UnreachableError(Exception):
    """Stands for MlflowException."""


class Deaf:
    """MLflow's client where no server answers; says how patient it was."""

    def __init__(self, uri):
        self.uri = uri

    def search_experiments(self, page_token):
        retries = os.environ.get("MLFLOW_HTTP_REQUEST_MAX_RETRIES")
        raise UnreachableError(f"{self.uri} asked again {retries} time(s)")


def test_a_server_that_does_not_answer_is_given_up_soon(monkeypatch):
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    mlflow, exceptions = ModuleType("mlflow"), ModuleType("mlflow.exceptions")
    mlflow.MlflowClient, exceptions.MlflowException = Deaf, UnreachableError
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.exceptions", exceptions)
    with pytest.raises(ExperienceError, match=r"localhost:9 asked again 1 time\(s\)"):
        importer.read("http://localhost:9", columns=LOSS)


def test_a_real_store(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/runs.db")
    for name, losses in {"a": [3.0, 2.0], "b": [1.0, None]}.items():
        experiment = client.create_experiment(name, artifact_location=str(tmp_path))
        for depth, loss in enumerate(losses):
            run = client.create_run(experiment).info.run_id
            client.log_param(run, "depth", depth)
            client.log_param(run, "kind", "tree")
            if loss is not None:
                client.log_metric(run, "loss", loss)
            client.set_terminated(run, "FAILED" if loss is None else "FINISHED")
        client.create_run(experiment)
    with warns("left-out", value=(NOT_ENDED, 2, ("b", "a"))):
        experience = importer.read(f"sqlite:///{tmp_path}/runs.db", columns=LOSS)
    assert set(experience.tasks) == {"a", "b"}
    one = experience.task("b")
    assert one.configs.dicts() == [{"depth": 0, "kind": "tree"}, {"depth": 1, "kind": "tree"}]
    assert [Status(int(s)) for s in one.status] == [Status.DONE, Status.FAILED]
    assert experience.task("a").values.tolist() == [[3.0], [2.0]]
    assert importer.read(tmp_path / "runs.db", columns=LOSS).tasks == experience.tasks
    assert importer.read(tmp_path / "runs.db", columns=LOSS, studies=["b"]).tasks == ("b",)
    with refuses("unknown-experiment", value="c"):
        importer.read(tmp_path / "runs.db", columns=LOSS, studies=["c"])
    with refuses("unreadable-mlflow-store"):
        importer.read("nonsense://x", columns=LOSS)


def test_the_history_of_a_metric_is_a_learning_curve(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/runs.db")
    experiment = client.create_experiment("a", artifact_location=str(tmp_path))
    for depth, losses in enumerate([[3.0, 2.0, 1.0], [4.0]]):
        run = client.create_run(experiment, start_time=1000)
        client.log_param(run.info.run_id, "depth", depth)
        for step, loss in enumerate(losses):
            moment = 1000 + 500 * (step + 1)
            client.log_metric(run.info.run_id, "loss", loss, timestamp=moment, step=2 * step)
            client.log_metric(run.info.run_id, "other", 9.0, timestamp=moment, step=7)
        client.set_terminated(run.info.run_id, "FINISHED")
    experience = importer.read(tmp_path / "runs.db", columns=LOSS)
    assert experience.curves is not None
    row = experience.configs.dicts().index({"depth": 0})
    place = experience.config_index.tolist().index(row)
    steps, values = experience.curves.at_steps(place, 0)
    assert (steps.tolist(), values.tolist()) == ([0, 2, 4], [3.0, 2.0, 1.0])
    assert experience.curves.seconds[experience.curves.points(place)].tolist() == [0.5, 1.0, 1.5]
    assert sorted(experience.curves.lengths.tolist()) == [0, 3]
    assert experience.values[place, 0] == 1.0
