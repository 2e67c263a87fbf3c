"""What is tried beside what past datasets suggest, where a table is larger than they were."""

from dataclasses import replace

import numpy as np
import pytest

from foretune.automl.knowledge.default_configs import default_config
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.knowledge.relevant_experience import FEW, is_beyond
from foretune.automl.plan import FitOptions
from foretune.automl.spaces import load_shipped_space
from foretune.automl.trial_search import opening_configs
from foretune.space import Space


@pytest.fixture(scope="module")
def knowledge() -> FitKnowledge:
    return FitKnowledge.for_space("pipeline-regression", metric="r2", own=False)


def test_a_table_is_beyond_experience_where_few_were_as_large(knowledge) -> None:
    past = knowledge.experience
    names = past.tasks[:10]
    rows = dict(zip(names, np.log(np.arange(100.0, 1100.0, 100.0)), strict=True))
    known = replace(past, meta_features={name: {"log_rows": r} for name, r in rows.items()})
    assert is_beyond(known, {"log_rows": float(np.log(601.0))})  # four have 700 or more
    assert not is_beyond(known, {"log_rows": float(np.log(600.0))})
    assert FEW == 5
    assert not is_beyond(known, {})


def test_larger_tables_begin_with_one_more(knowledge) -> None:
    usual = opening_configs(FitOptions(), knowledge, {"log_rows": float(np.log(500.0))})
    large = opening_configs(FitOptions(), knowledge, {"log_rows": float(np.log(20_000.0))})
    assert len(large) == len(usual) + 1
    last = large.dicts()[-1]
    assert last == default_config(knowledge.space).dicts()[0]
    assert last["estimator"] == "lightgbm"


@pytest.mark.parametrize("name", ["pipeline-classification", "pipeline-regression"])
def test_it_is_boosting_with_the_defaults_of_its_library(name: str) -> None:
    without = default_config(load_shipped_space(name).build(["hist_boosting", "rf"])).dicts()[0]
    assert without["estimator"] == "hist_boosting"
    assert without["estimator:hist_boosting:max_leaf_nodes"] == 31
    assert without["encoder"] == "ordinal"


def test_a_space_without_it_has_none() -> None:
    assert default_config(load_shipped_space("pipeline-regression").build(["rf"])) is None
    assert default_config(Space.of({"estimator": {"lightgbm": {"depth": (1, 9)}}})) is None
