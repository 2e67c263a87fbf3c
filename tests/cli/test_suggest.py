import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from foretune.automl.knowledge.bundle import Bundle
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.learn_bundle import LearningPlan, learn_bundle
from foretune.automl.knowledge.memory import Memory
from foretune.automl.knowledge.relevant_experience import by_metric
from foretune.automl.metrics import SCORERS
from foretune.automl.spaces import load_shipped_space
from foretune.cli.suggest import suggest_command
from foretune.experience import Evaluation
from foretune.tables.column_roles import ColumnRoles
from foretune.tables.identity import task_name
from foretune.tables.reading import read_table
from tests.automl.past import ONLY, SPACE, past
from tests.automl.samples import mixed_frame


@pytest.fixture(scope="module")
def ships(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ships")
    known = past()
    views = {"r2": by_metric(known, SCORERS["r2"].metric)}
    learn_bundle(views, LearningPlan(SPACE, methods=()), Bundle.open(folder), ships=known)
    return folder


@pytest.fixture(autouse=True)
def own_home(request, tmp_path, monkeypatch, ships):
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(
        "foretune.automl.knowledge.knowledge.SHIPPED", getattr(request, "param", ships)
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "sales.csv"
    mixed_frame().drop(columns="class").to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(suggest_command, [str(word) for word in words])


def test_rows_are_weighed_as_in_a_fit(table):
    frame = mixed_frame().drop(columns="class")
    frame.assign(months=np.arange(1, len(frame) + 1)).to_csv(table, index=False)
    ended = run(table, "--target", "amount", "--weight", "months", "-k", "1")
    assert ended.exit_code == 0, ended.exception
    assert "rows, weighed by 'months'." in ended.output


def test_the_task_may_be_asked_for_as_in_a_fit(table):
    frame = mixed_frame().drop(columns="class")
    frame.assign(amount=np.arange(len(frame)) % 3).to_csv(table, index=False)
    words = (table, "--target", "amount", "-k", "1", "--task", "regression")
    ended = run(*words, "--json")
    assert ended.exit_code == 0, ended.exception
    assert json.loads(ended.output)["task"] == "regression"
    assert "(regression), as asked" in run(*words).output
    assert "--task [classification|regression]" in run("--help").output


def test_pipelines_are_suggested_in_words(table):
    ended = run(table, "--target", "amount", "-k", "2")
    assert ended.exit_code == 0, ended.exception
    assert "Known: shipped: 80 evaluations on 5 datasets.\n" in ended.output
    assert "1. in the best" in ended.output
    assert "; the best of these 2, in the best" in ended.output
    assert "3. " not in ended.output
    assert " > " in ended.output


def test_programs_get_json(table):
    ended = run(table, "--target", "amount", "-k", "3", "--only", "knn, rf", "--json")
    assert ended.exit_code == 0, ended.exception
    plain = json.loads(ended.output)
    assert (plain["table"], plain["task"], plain["metric"]) == ("sales", "regression", "r2")
    assert len(plain["suggestions"]) == 3
    space = load_shipped_space(SPACE).build(("knn", "rf"))
    for each in plain["suggestions"]:
        assert space.encode([each["config"]]).dicts() == [each["config"]]
        assert 0.0 <= each["better_than_all_so_far"] <= each["better_pipelines"] <= 1.0
        assert each["seconds"] == 2.0


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (ColumnRoles(), ()),
        (ColumnRoles(group="letter"), ("--group", "letter")),
        (ColumnRoles(order="day", ignored=("town",)), ("--order", "day", "--ignore", "town")),
    ],
)
def test_the_best_on_the_same_table_comes_first(table, roles, words):
    task = task_name(read_table(table, "amount", roles=roles).table)
    space = load_shipped_space(SPACE).build(ONLY)
    configs = space.sample(3, seed=0).dicts()
    found = [Evaluation(task, configs[i], {"r2": i / 10}) for i in range(3)]
    metrics = (SCORERS["r2"].metric,)
    Memory.of_user().remember(FitDescription(SPACE, space, metrics, task, {}), found)
    ended = run(table, "--target", "amount", "-k", "2", "--json", *words)
    first, _ = json.loads(ended.output)["suggestions"]
    assert first["config"] == configs[2]
    assert "the best of your 3 trials on this table (r2 0.2)" in first["why"]


def test_the_best_on_the_same_table_is_not_suggested_again(table):
    words = (table, "--target", "amount", "-k", "3", "--json")
    once, twice, third = json.loads(run(*words).output)["suggestions"]
    task = task_name(read_table(table, "amount").table)
    space = load_shipped_space(SPACE).build(ONLY)
    found = [Evaluation(task, twice["config"], {"r2": 0.9})]
    Memory.of_user().remember(
        FitDescription(SPACE, space, (SCORERS["r2"].metric,), task, {}), found
    )
    again = [each["config"] for each in json.loads(run(*words).output)["suggestions"]]
    assert again == [twice["config"], once["config"], third["config"]]


def test_estimators_that_are_left_out_do_not_come_back(table):
    task = task_name(read_table(table, "amount").table)
    space = load_shipped_space(SPACE).build(ONLY)
    tried = {config["estimator"]: config for config in space.sample(60, seed=0).dicts()}
    values = {"knn": 0.9, "rf": 0.2}
    found = [Evaluation(task, tried[name], {"r2": value}) for name, value in values.items()]
    Memory.of_user().remember(
        FitDescription(SPACE, space, (SCORERS["r2"].metric,), task, {}), found
    )
    ended = run(table, "--target", "amount", "-k", "2", "--only", "rf", "--json")
    first, second = json.loads(ended.output)["suggestions"]
    assert first["config"] == tried["rf"]
    assert "the best of your 1 trials on this table (r2 0.2)" in first["why"]
    assert second["config"]["estimator"] == "rf"
    ended = run(table, "--target", "amount", "-k", "1", "--only", "svm", "--json")
    assert json.loads(ended.output)["suggestions"][0]["config"]["estimator"] == "svm"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "amounts"], "amount"),
        (["--target", "amount", "--only", "knnn"], "did you mean 'knn'"),
        (["--target", "amount", "--space", "cash"], "is for classification"),
        (["--target", "amount", "--space", "cash"], "out or choose one for regression;"),
        (["--target", "amount", "--metric", "auc"], "one of r2, rmse"),
    ],
)
def test_mistakes_are_one_sentence(table, words, said):
    assert said in str(run(table, *words).exception)


@pytest.mark.parametrize("own_home", [Path("nothing")], indirect=True)
def test_without_past_datasets_there_is_nothing_to_suggest(table):
    assert "suggestions need past datasets" in str(run(table, "--target", "amount").exception)
