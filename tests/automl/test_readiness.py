from dataclasses import replace

import pytest

from foretune.automl.final_model.fitted_pipeline import refit
from foretune.automl.final_model.model import Model
from foretune.automl.job import FitFolder
from foretune.automl.plan import FitOptions
from foretune.automl.preflight import check_ready
from foretune.automl.spaces import load_shipped_space
from foretune.errors import UsageError
from foretune.tables.target import Task

from .samples import mixed_frame, mixed_table

pytest.importorskip("skops")


@pytest.fixture
def table():
    return mixed_table(Task.CLASSIFICATION)


def test_a_test_table_must_have_the_features(tmp_path, table) -> None:
    place, test = FitFolder(tmp_path), mixed_frame(seed=1)
    check_ready(FitOptions(), place, table, test, "class")
    with pytest.raises(UsageError, match="'letter' is missing"):
        check_ready(FitOptions(), place, table, test.drop(columns="letter"), "class")


def test_a_folder_keeps_the_model_of_one_target(tmp_path, table) -> None:
    place = FitFolder(tmp_path)
    [config] = (
        load_shipped_space("pipeline-classification").build(["naive_bayes"]).defaults().dicts()
    )
    members = [refit(config, table, seed=0)]
    Model.of(table, members, target="class", metric="accuracy").save(place.model)
    check_ready(FitOptions(), place, replace(table, name="newer"), None, "class")
    with pytest.raises(UsageError, match=r"predicts 'class'.*'letter'.*-o FOLDER"):
        check_ready(FitOptions(), place, table, None, "letter")


def test_what_is_no_model_is_in_nobodys_way(tmp_path, table) -> None:
    place = FitFolder(tmp_path)
    place.model.write_bytes(b"half a mod")
    check_ready(FitOptions(), place, table, None, "class")


def test_a_test_table_has_no_zeros_where_they_are_divided_by(tmp_path) -> None:
    table = mixed_table(Task.REGRESSION)
    test = mixed_frame().assign(amount=0.0)
    check_ready(FitOptions(metric="mae"), FitFolder(tmp_path), table, test, "amount")
    with pytest.raises(UsageError, match=r"in 90 of 90 rows of the test table: choose mae"):
        check_ready(FitOptions(metric="mape"), FitFolder(tmp_path), table, test, "amount")
