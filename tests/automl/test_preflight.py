from dataclasses import replace

import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.model import Model
from foretune.automl.fit_data import FitData
from foretune.automl.fit_folder import FitFolder
from foretune.automl.plan import FitOptions
from foretune.automl.preflight import check_ready
from foretune.automl.spaces import load_shipped_space
from foretune.tables.target import Task
from tests.refusals import refuses

from .samples import mixed_frame, mixed_table

pytest.importorskip("skops")


@pytest.fixture
def table():
    return mixed_table(Task.CLASSIFICATION)


def test_a_test_table_must_have_the_features(tmp_path, table) -> None:
    folder, test = FitFolder(tmp_path), mixed_frame(seed=1)
    check_ready(FitOptions(), folder, FitData(table, "class", test))
    with refuses("missing-features", value=["letter"]):
        check_ready(FitOptions(), folder, FitData(table, "class", test.drop(columns="letter")))


def test_a_folder_keeps_the_model_of_one_target(tmp_path, table) -> None:
    folder = FitFolder(tmp_path)
    [config] = (
        load_shipped_space("pipeline-classification").build(["naive_bayes"]).defaults().dicts()
    )
    members = [refit(config, table, seed=0)]
    Model.of(table, members, target="class", metric="accuracy").save(folder.model)
    check_ready(FitOptions(), folder, FitData(replace(table, name="newer"), "class"))
    with refuses("folder-of-another-target", value="class"):
        check_ready(FitOptions(), folder, FitData(table, "letter"))


def test_other_files_do_not_block_a_model(tmp_path, table) -> None:
    folder = FitFolder(tmp_path)
    folder.model.write_bytes(b"half a mod")
    check_ready(FitOptions(), folder, FitData(table, "class"))


def test_a_test_table_has_no_zeros_where_they_are_divided_by(tmp_path) -> None:
    table = mixed_table(Task.REGRESSION)
    test = mixed_frame().assign(amount=0.0)
    data, folder = FitData(table, "amount", test), FitFolder(tmp_path)
    check_ready(FitOptions(metric="mae"), folder, data)
    with refuses("mape-of-zero", value=90):
        check_ready(FitOptions(metric="mape"), folder, data)
