"""The short form of benchmarks/reliability/shell.py."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks/reliability/shell.py"


@pytest.fixture(scope="module")
def fuzz():
    sys.path.insert(0, str(PROGRAM.parent))  # its neighbours are imported by their names
    spec = importlib.util.spec_from_file_location("shell_fuzz", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["shell_fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not Path("/bin/dash").exists(), reason="the shells tried are dash and bash")
def test_no_value_is_run_as_a_command(fuzz, tmp_path):
    drawn = random.Random(0)
    templates, values = drawn.sample(fuzz.templates(), 50), drawn.sample(fuzz.VALUES, 4)
    # What was run on d30cd67, always among them:
    templates += [fuzz.Template("# it's a comment\necho {a}", None)]
    values += ["$(touch canary)"]
    counts = fuzz.run_all(templates, values, tmp_path)
    assert counts["injected"] == 0
    assert counts["inexact"] == 0
    assert counts["exact"] > 100
    assert counts["refused"] > 100


def test_the_canary_is_seen(fuzz, tmp_path):
    fuzz._read_output(["/bin/sh", "-c", "touch canary"], {}, tmp_path)
    assert fuzz._has_canary(tmp_path)
    assert not fuzz._has_canary(tmp_path)
