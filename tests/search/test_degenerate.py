"""Methods on experiences from which little can be learnt: they work, or say what they need.

benchmarks/reliability/degenerate.py has every method and every kind.
"""

import runpy
import sys
from pathlib import Path

import pytest

from foretune.search import METHODS

SCRIPT = Path(__file__).parents[2] / "benchmarks/reliability/degenerate.py"
sys.path.insert(0, str(SCRIPT.parent))  # its neighbours are imported by their names
MATRIX = runpy.run_path(str(SCRIPT))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["random", "zero-shot", "rgpe", "oboe"])
def test_nothing_is_raised_but_what_names_the_remedy(name: str) -> None:
    cells = {
        kind: MATRIX["try_method"](METHODS[name], make()) for kind, make in MATRIX["CASES"].items()
    }
    refused = {kind for kind, cell in cells.items() if cell.outcome == "refused"}
    assert not [cell.said for cell in cells.values() if cell.outcome == "raised"]
    assert refused <= {"no tasks", "constants only"}
