"""Write the list of slow tests from a whole run of the tests.

    pytest --durations=0 > durations.txt; python tools/list_slow_tests.py durations.txt

A test function is slow if one of its cases takes more than 0.2 s, or all of them together more than
1 s. A file is listed as a whole if at least half of its test functions are slow, or if a fixture,
which its tests share, takes more than 1 s.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

CASE_SECONDS, FUNCTION_SECONDS, FIXTURE_SECONDS = 0.2, 1.0, 1.0
LIST = Path("tests/slow_tests.txt")
_LINE = re.compile(r"\s*([\d.]+)s (call|setup|teardown)\s+(\S+\.py)::(.+)")


def main(log: Path) -> None:
    """Read the durations of a run and write the list."""
    slow = find_slow_tests(log.read_text(encoding="utf-8").splitlines())
    lines = sorted(line for file, tests in slow.items() for line in list_file(Path(file), tests))
    LIST.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(lines)} lines in {LIST}")


def find_slow_tests(lines: Iterable[str]) -> dict[str, set[str]]:
    """Return the slow test functions of each file, as pytest measured them.

    The empty name stands for the whole file.
    """
    slow: defaultdict[str, set[str]] = defaultdict(set)
    cases: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for line in lines:
        if found := _LINE.match(line):
            seconds, phase, file, case = found.groups()
            test = case.partition("[")[0].rpartition("::")[2].strip()
            cases[file, test][case] += float(seconds)
            if phase == "setup" and float(seconds) > FIXTURE_SECONDS:
                slow[file].add("")
    for (file, test), durations in cases.items():
        if max(durations.values()) > CASE_SECONDS or durations.total() > FUNCTION_SECONDS:
            slow[file].add(test)
    return slow


def list_file(file: Path, slow: set[str]) -> list[str]:
    """Return the lines for one file: its slow tests, or the file itself if these are many."""
    if not file.exists():
        return []
    tests = test_functions(file)
    if "" in slow or len(slow) * 2 >= len(tests):
        return [file.as_posix()]
    return [f"{file.as_posix()}::{test}" for test in slow & tests]


def test_functions(file: Path) -> set[str]:
    """Return the names of the test functions that a file defines."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef))
    return {name for name in functions if name.startswith("test")}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
