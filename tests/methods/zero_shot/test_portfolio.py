import json
from dataclasses import replace

import numpy as np
import pytest

import foretune
from foretune.cli.portfolio import BUILDERS as CLI_BUILDERS
from foretune.cli.portfolio import SHIPPED as CLI_SHIPPED
from foretune.errors import ArtifactError, MethodError, UsageError
from foretune.methods.contracts import Target
from foretune.methods.zero_shot.build import BUILDERS, Recipe, build, portfolio_start
from foretune.methods.zero_shot.portfolio import Portfolio, as_python
from foretune.methods.zero_shot.shipped import SHIPPED
from foretune.methods.zero_shot.table import loss_table
from foretune.search import Optimizer, method
from foretune.space import Space
from tests.methods.zero_shot.examples import (
    SPACE,
    bowls,
    candidates,
    experience_of,
    unshared_experience,
)
from tests.refusals import refuses


def test_the_command_line_knows_all_builders_and_portfolios():
    assert tuple(BUILDERS) == CLI_BUILDERS
    assert SHIPPED == CLI_SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_portfolios_have_five_different_configurations_and_a_source(name):
    shipped = foretune.portfolio(name)
    assert len(shipped) == 5
    assert len({json.dumps(config, sort_keys=True) for config in shipped.configs}) == 5
    assert "zero-shot HPO (2020), Table" in shipped.source
    if name != "zaml":
        assert len({tuple(config) for config in shipped.configs}) == 1


def test_shipped_configurations_lie_in_the_papers_spaces():
    spaces = {
        "xgboost": {
            "n_estimators": (4, 512),
            "learning_rate": (1e-6, 1.0),
            "max_depth": (2, 32),
            "min_child_weight": (1, 32),
            "gamma": (2**-20, 64.0),
            "reg_alpha": (2**-20, 1.0),
            "reg_lambda": (2**-20, 1.0),
            "subsample": (0.5, 1.0),
            "colsample_bytree": (0.3, 1.0),
        },
        "lightgbm": {
            "boosting_type": ["gbdt", "dart", "goss"],
            "num_leaves": (30, 150),
            "learning_rate": (0.01, 0.1),
            "min_child_samples": (20, 500),
            "reg_alpha": (0.0, 1.0),
            "reg_lambda": (0.0, 1.0),
            "colsample_bytree": (0.6, 1.0),
            "subsample": (0.5, 1.0),
            "subsample_for_bin": (20_000, 300_000),
        },
        "catboost": {
            "iterations": (10, 1000),
            "depth": (1, 8),
            "learning_rate": (0.01, 1.0),
            "random_strength": (1e-9, 10.0),
            "bagging_temperature": (0.0, 1.0),
            "border_count": (1, 255),
            "l2_leaf_reg": (2, 30),
        },
    }
    for name, notation in spaces.items():
        assert len(Space.of(notation).encode(foretune.portfolio(name).configs)) == 5


def test_an_unknown_portfolio_is_refused_by_name():
    with refuses("unknown-portfolio", value="svm", kind=UsageError):
        foretune.portfolio("svm")


def test_files_round_trip(tmp_path):
    recipe = Recipe(k=3, builder="mf", budget=200, aggregate="median")
    built = build(experience_of(bowls(candidates()), candidates()), recipe)
    made = built.portfolio(recipe, "runs.parquet")
    made.save(tmp_path / "portfolio.json")
    opened = Portfolio.open(tmp_path / "portfolio.json")
    assert opened == made
    assert SPACE.encode(opened.configs) == built.configs
    assert (opened.fingerprint, opened.jobs) == (SPACE.fingerprint, 200)
    assert len(opened.losses) == 3


def test_a_configuration_with_infinity_comes_back(tmp_path):
    made = replace(foretune.portfolio("mlp"), configs=({"eps": float("inf")},))
    made.save(tmp_path / "portfolio.json")
    assert Portfolio.open(tmp_path / "portfolio.json") == made


def test_spoilt_files_are_refused(tmp_path):
    path = tmp_path / "portfolio.json"
    good = json.loads(foretune.portfolio("mlp").to_json())
    for spoilt in ("no json", "[]", json.dumps(good | {"version": 9}), json.dumps({"a": 1})):
        path.write_text(spoilt)
        with refuses("not-a-portfolio", value=str(path), kind=ArtifactError):
            Portfolio.open(path)
    for name in ("configs", "losses"):
        path.write_text(json.dumps(good | {name: 3}))
        with refuses("damaged-portfolio", value=str(path), kind=ArtifactError):
            Portfolio.open(path)
    with refuses("path-not-readable", field="path", kind=ArtifactError):
        Portfolio.open(tmp_path / "missing.json")


def test_a_pasted_list_is_python():
    configs = foretune.portfolio("catboost").configs
    assert eval(as_python(configs)) == list(configs)


def test_a_recipe_for_no_configuration_is_refused():
    with refuses("least-one-config", field="k", value=0, kind=UsageError):
        Recipe(k=0)


def test_the_builder_follows_the_table():
    shared = build(experience_of(bowls(candidates()), candidates()), Recipe(k=2))
    assert shared.builder == "naive"
    assert build(unshared_experience(), Recipe(k=2)).builder == "surrogate"


def test_some_of_many_tasks_stand_for_all_where_nothing_is_shared():
    experience = unshared_experience(tasks=6, each=10)
    assert build(experience, Recipe(k=2), most_forests=3).jobs == 30
    assert build(experience, Recipe(k=2, builder="surrogate"), most_forests=3).jobs == 60
    table = loss_table(experience)
    some = table.some_tasks(3, seed=0)
    assert set(some.tasks) < set(table.tasks)
    for name, losses in zip(some.tasks, some.losses, strict=True):
        tried = np.flatnonzero(~np.isnan(losses))
        row = table.losses[table.tasks.index(name)]
        assert np.nansum(row) == pytest.approx(np.nansum(losses[tried]))
        assert table.configs.take(np.flatnonzero(~np.isnan(row))).isin(some.configs).all()


def test_the_portfolio_opens_any_optimiser():
    experience = experience_of(bowls(candidates()), candidates())
    start = portfolio_start(experience, Recipe(k=4))
    gp = method("gp")
    optimizer = Optimizer(Target(SPACE), gp, gp.learn(None, seed=0), start=start)
    assert [s.config for s in optimizer.ask(4)] == start.dicts()


def test_zero_shot_tries_the_list_in_order_then_goes_on():
    experience = experience_of(bowls(candidates()), candidates())
    for name in ("zero-shot", "zero-shot-gp"):
        chosen = method(name)
        prior = chosen.learn(experience, seed=0)
        optimizer = Optimizer(Target(SPACE), chosen, prior)
        asked = optimizer.ask(12)
        assert [s.reason for s in asked] == ["start"] * 10 + ["random"] * 2
        assert {s.config["kind"] for s in asked[:2]} == {"left", "right"}


def test_another_space_is_refused():
    prior = method("zero-shot").learn(unshared_experience(), seed=0)
    with refuses("prior-of-another-space", kind=MethodError):
        prior.opening(Target(Space.of({"width": (0.0, 10.0)})))
