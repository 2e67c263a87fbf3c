"""The short forms of several attacks, in forks of one process that does the imports for all.

    python benchmarks/reliability/short.py "kills.py --command tune" stops.py

Each line of the output is a JSON object: the words of an attack, its exit code, its output and its
errors. The tests read these lines.
"""

import json
import os
import runpy
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO

from lives import import_early
from mounts import enter_namespace
from tally import read

FOLDER = Path(__file__).parent


def run_attack(words: list[str], folder: Path) -> dict[str, object]:
    """Run a script with its words and `--short` in a fork."""
    paths = folder / "output", folder / "errors"
    pid = os.fork()
    if pid == 0:
        run_script(words, [path.open("wb") for path in paths])
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    output, errors = map(read, paths)
    return {"words": " ".join(words), "code": code, "output": output, "errors": errors}


def run_script(words: list[str], files: list[IO[bytes]]) -> None:
    """Run a script in this process, which ends with it."""
    for descriptor, file in enumerate(files, start=1):
        os.dup2(file.fileno(), descriptor)
    sys.argv, code = [*words, "--short"], 1
    try:
        runpy.run_path(str(FOLDER / words[0]), run_name="__main__")
        code = 0
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    # In a namespace each script finds one, and does not start Python anew. Without a namespace the
    # scripts that need one say why they were skipped.
    enter_namespace()
    import_early(only_tune=True)
    for attack in sys.argv[1:]:
        # Not `TemporaryDirectory`: forks that end as Python ends would remove it.
        folder = Path(tempfile.mkdtemp(prefix="short-"))
        print(json.dumps(run_attack(attack.split(), folder)), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
