import pickle
from functools import partial

import numpy as np
import pytest

from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.run.inline import InlineExecutor
from foretune.run.named_function import NamedFunction
from foretune.run.trial_results import (
    MOST_ENTRIES,
    MOST_NOTES,
    ResultError,
    check_result,
    plain,
)
from tests.refusals import refuses

ERROR, SIZE = Metric("error"), Metric("size")


def test_numbers_of_any_kind_are_values():
    assert check_result(np.float32(0.5), [ERROR]).values == {"error": 0.5}
    assert check_result(3, [ERROR]).values == {"error": 3.0}
    assert check_result({"error": 1, "size": np.int64(2)}, [ERROR, SIZE]).values == {
        "error": 1.0,
        "size": 2.0,
    }


def test_several_metrics_need_a_mapping():
    with refuses("not-a-mapping", kind=ResultError):
        check_result(1.0, [ERROR, SIZE])


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_too_large_for_a_float_is_no_result(digits):
    with refuses("not-finite", field="error", kind=ResultError):
        check_result(10**digits, [ERROR])
    with refuses("not-a-mapping", kind=ResultError):
        check_result(10**digits, [ERROR, SIZE])
    assert check_result({"error": 1, "size": -(10**digits)}, [ERROR]).values == {"error": 1.0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend("")
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
    for each in (function, pickle.loads(pickle.dumps(function))):
        with InlineExecutor(each) as executor:
            executor.submit({"x": 2})
            assert executor.results()[0].result == 3


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


class Hostile(float):
    """A number whose own code raises, wherever it is asked."""

    def __reduce__(self):
        raise KeyError("pickled")

    def __repr__(self):
        raise KeyError("shown")

    def __eq__(self, other):
        raise KeyError("compared")

    __hash__ = float.__hash__


class Nothing:
    """No number, and its own code raises."""

    __reduce__ = __repr__ = __eq__ = __float__ = Hostile.__repr__
    __hash__ = object.__hash__


class Liar:
    @property
    def __class__(self):
        raise KeyError("what it is")


class Endless(dict):
    def items(self):
        raise KeyError("its items")


def test_a_number_with_code_of_its_own_is_a_plain_number():
    for result in (Hostile(0.5), {"error": Hostile(0.5)}):
        values = check_result(result, [ERROR]).values
        assert values == {"error": 0.5}
        assert type(values["error"]) is float


USELESS = {
    **{f"{x}": partial(float, x) for x in ("nan", "inf", "-inf")},
    **{type(x).__name__: partial(lambda x: x, x) for x in ("text", None, True, 1j, b"b", [1.0])},
    "array": lambda: np.zeros(3),
    "array of one": lambda: np.array(0.5),
    "NumPy's nan": lambda: np.float64("nan"),
    "generator": lambda: (n for n in range(3)),
    "function": lambda: lambda: 0,
    "object": object,
    "raises": Nothing,
    "hides its class": Liar,
    "mapping that raises": lambda: Endless(error=1),
    "set": lambda: {1.0},
    "large": lambda: bytes(10**6),
    "whole number": lambda: 10**400,
    "class": lambda: type,
}


def reason(result):
    with pytest.raises(ResultError) as refused:
        check_result(result, [ERROR])
    return str(refused.value)


def reason_of_sent(result):
    """The same when the result first travels from a worker."""
    with pytest.raises(ResultError) as refused:
        check_result(pickle.loads(pickle.dumps(plain(result))), [ERROR])
    return str(refused.value)


@pytest.mark.parametrize("name", USELESS)
def test_infinite_values_are_refused_in_process_and_from_workers(name):
    kept = USELESS[name]()
    for result in (kept, {"error": kept}):
        assert reason(result) == reason_of_sent(result)
        assert len(reason(result)) < 300


def test_a_result_of_many_entries_is_refused_and_one_within_the_limit_kept():
    many = {"error": 1.0, **{f"n{n}": float(n) for n in range(MOST_ENTRIES - 1)}}
    assert len(check_result(many, [ERROR]).values) == MOST_ENTRIES
    with refuses("too-many-entries", value=MOST_ENTRIES + 1):
        check_result({**many, "one more": 1.0}, [ERROR])


def test_notes_over_their_limit_are_refused():
    assert check_result({"error": 1, "notes": {"a": "x" * 1000}}, [ERROR]).notes["a"] == "x" * 1000
    with refuses("notes-not-json"):
        check_result({"error": 1, "notes": {"a": "x" * MOST_NOTES}}, [ERROR])


def test_names_of_entries_are_plain_texts():
    class Name(str):
        def __hash__(self):
            return 1

    plain_result = plain({Name("error"): 1, 2: 3})
    assert plain_result == {"error": 1, "2": 3}
    assert {type(name) for name in plain_result} == {str}
