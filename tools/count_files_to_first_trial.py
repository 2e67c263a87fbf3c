"""Count the files of Foretune that `foretune fit` runs through before its first trial.

    python tools/count_files_to_first_trial.py [--list] [words of the command]

A file counts if one of its functions is called in the command's own process, between the start
and the first trial that is given to an executor. Files that are only imported are counted apart.
"""

import ast
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from types import FrameType

import foretune

PACKAGE = Path(foretune.__file__).parent
DEMO = ["--demo", "--trials", "2", "--only", "knn", "--jobs", "1", "--no-remember"]
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")


class FirstTrialSubmitted(BaseException):
    """Ends the command: all that matters has been seen."""


@cache
def class_bodies(file: str) -> frozenset[int]:
    """Return the first lines of the classes in a file: their bodies run when it is imported."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return frozenset(
        min([node.lineno, *(each.lineno for each in node.decorator_list)]) for node in classes
    )


def runs_at_import(frame: FrameType) -> bool:
    """Return whether a module or the body of a class runs, or a comprehension in one of them."""
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_name in COMPREHENSIONS:
        outer = outer.f_back
    code = (outer or frame).f_code
    return code.co_name == "<module>" or code.co_firstlineno in class_bodies(code.co_filename)


def count_calls(words: list[str]) -> Counter[str]:
    """Run `foretune fit` until its first trial, and count calls by file."""
    from foretune.cli import foretune as command

    calls: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        if not runs_at_import(frame):
            calls[code.co_filename] += 1
        if code.co_name == "submit" and code.co_filename.endswith(("pool.py", "inline.py")):
            raise FirstTrialSubmitted

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(watch)
        try:
            command(["fit", *words, "-o", folder], standalone_mode=False)
        except FirstTrialSubmitted:
            pass
        finally:
            sys.setprofile(None)
    return calls


def main() -> None:
    """Print the counts."""
    words = [word for word in sys.argv[1:] if word != "--list"]
    calls = count_calls(words or DEMO)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "foretune"]
    if "--list" in sys.argv:
        for file, times in sorted(calls.items()):
            print(f"{times:8,} {Path(file).relative_to(PACKAGE)}")
    print(f"{len(calls)} files with calls, {len(loaded)} modules loaded")


if __name__ == "__main__":
    main()
