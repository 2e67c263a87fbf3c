import pickle

import numpy as np
import pytest

from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.run.objectives import NamedFunction, ResultError, measured

ERROR, SIZE = Metric("error"), Metric("size")


def test_numbers_of_any_kind_are_values():
    assert measured(np.float32(0.5), [ERROR]).values == {"error": 0.5}
    assert measured(3, [ERROR]).values == {"error": 3.0}
    assert measured({"error": 1, "size": np.int64(2)}, [ERROR, SIZE]).values == {
        "error": 1.0,
        "size": 2.0,
    }


def test_several_metrics_need_a_mapping():
    with pytest.raises(ResultError, match="must be a mapping with error, size, but got 1"):
        measured(1.0, [ERROR, SIZE])


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_too_large_for_a_float_is_no_result(digits):
    with pytest.raises(ResultError, match="'error' must be a finite number, but got"):
        measured(10**digits, [ERROR])
    with pytest.raises(ResultError, match="must be a mapping with error, size, but got"):
        measured(10**digits, [ERROR, SIZE])
    assert measured({"error": 1, "size": -(10**digits)}, [ERROR]).values == {"error": 1.0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    (tmp_path / "objective_for_tests.py").write_text(
        "offset = 1\ndef run(config):\n    return config['x'] + offset\n"
        "class Group:\n    inner = staticmethod(run)\n"
    )
    (tmp_path / "broken_for_tests.py").write_text("import no_such_module\n")
    (tmp_path / "ending_for_tests.py").write_text("import sys\nsys.exit(0)\n")
    return tmp_path


@pytest.mark.parametrize("name", ["objective_for_tests:run", "objective_for_tests:Group.inner"])
def test_functions_are_found_in_the_folder_and_in_other_processes(folder, name):
    function = NamedFunction(name, folder)
    assert function({"x": 2}) == 3
    assert pickle.loads(pickle.dumps(function))({"x": 2}) == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("objective_for_tests", "must be written as module:function"),
        ("objective_for_tests:", "must be written as module:function"),
        ("nowhere_at_all:run", "ModuleNotFoundError"),
        ("broken_for_tests:run", "No module named 'no_such_module'; correct the name, or mend"),
        ("ending_for_tests:run", "SystemExit: 0; let what ends the program stand under"),
        ("objective_for_tests.py:run", "write objective_for_tests:run"),
        ("./a/b_for_tests.py:run", "write a.b_for_tests:run"),
        ("objective_for_tests:walk", "there is no 'walk' in objective_for_tests"),
        ("objective_for_tests:offset", "must be a function, but it is of type int: name"),
    ],
)
def test_names_of_nothing_are_refused(folder, name, said):
    with pytest.raises(UsageError) as refused:
        NamedFunction(name, folder)
    assert said in str(refused.value)
