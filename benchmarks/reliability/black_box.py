"""The attacks that the commit d30cd67 did not survive, on any copy of Foretune's sources.

    git worktree add /tmp/before d30cd67
    python benchmarks/reliability/black_box.py --source /tmp/before/src   # each attack succeeds
    python benchmarks/reliability/black_box.py                            # none does

Attacks use only commands, so they mean the same for every version. Tests of single modules are in
`tests/`; this script shows that their causes were there before. Each attack runs in a folder of its
own, with at most a minute of processor time for each process. The exit code is the number of
attacks that succeed.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CPU_SECONDS = 60
PATIENCE = 150.0
TRAIN = """
import os, sys, time, subprocess
def forks(config):
    if os.fork() == 0:
        return -1.0
    time.sleep(0.3)
    return config["x"]
def prints(config):
    for _ in range(40):
        print("x" * 2**20)
    return config["x"]
def writes(config):
    for descriptor in range(3, 64):
        try:
            os.set_blocking(descriptor, False)
            os.write(descriptor, b"\\x80\\x04}" * 1000)
        except OSError:
            pass
    return config["x"]
def daemon(config):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("pid", "w").write(str(os.getpid()))
            time.sleep(300)
        os._exit(0)
    time.sleep(1.0)
    return config["x"]
"""
LINE = {"x": [0.0, 1.0]}


@dataclass
class Ended:
    """How a command ended. The code is None if it had to be killed."""

    code: int | None
    out: str
    err: str

    @property
    def is_clean(self) -> bool:
        """Whether it ended with a result or with one sentence."""
        return self.code in (0, 2) and "Traceback" not in self.err


class Place:
    """A folder with the files of an attack, and the sources that are attacked."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self._source = folder, source
        (folder / "train.py").write_text(TRAIN)
        self.space(LINE)

    def space(self, notation: object) -> None:
        (self.folder / "space.json").write_text(json.dumps(notation))

    def run(self, *words: str) -> Ended:
        """Run a command, and end all that it has started in its session."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self._source}:{self.folder}",
            "FORETUNE_HOME": str(self.folder / "home"),
        }
        with (
            (self.folder / "said.out").open("wb") as out,
            (self.folder / "said.err").open("wb") as err,
        ):
            process = subprocess.Popen(
                [sys.executable, "-m", "foretune", *words], cwd=self.folder, env=environment,
                stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            try:
                code: int | None = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        texts = [
            (self.folder / name).read_text(errors="replace") for name in ("said.out", "said.err")
        ]
        return Ended(code, *texts)

    def tune(self, function: str, trials: int = 4) -> Ended:
        words = ["tune", f"train:{function}", "--space", "space.json", "--method", "random"]
        return self.run(*words, "--trials", str(trials), "--jobs", "2", "--out", "tuned.parquet")

    def table(self, rows: int = 200) -> None:
        lines = [f"{n % 7},{n % 3},{'yes' if n % 7 > 2 else 'no'}" for n in range(rows)]
        (self.folder / "table.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")


def injects(place: Place) -> str:
    """Point 1: a value of a hyperparameter is run as a command."""
    place.space({"a": ["$(touch injected)", "`touch injected`"]})
    template = "# it's a comment\necho {a}; echo 1"
    words = ["--space", "space.json", "--method", "random", "--trials", "2"]
    place.run("tune", "--command", template, *words)
    return "the value ran" if (place.folder / "injected").exists() else ""


def mixes_results(place: Place) -> str:
    """Point 2: a child that returns as well gives its result to another trial."""
    place.tune("forks", 6)
    if not (place.folder / "tuned.parquet").exists():
        return "no result"
    import pandas as pd

    table = pd.read_parquet(place.folder / "tuned.parquet")
    numbers = table.select_dtypes("number").to_numpy()
    return "a result is that of a child" if (numbers == -1.0).any() else ""


def has_no_model(place: Place) -> str:
    """Point 3: `fit --time` ends without a model."""
    place.table()
    words = ["--time", "8s", "--time-limit", "0.01s", "--jobs", "1", "-o", "out", "--no-remember"]
    ended = place.run("fit", "table.csv", "--target", "y", *words)
    model = (place.folder / "out" / "model.foretune").exists()
    return "" if ended.code == 0 and model else f"exit code {ended.code}, model: {model}"


def nests(place: Place) -> str:
    """Point 4: time is exponential in nested conditions."""
    notation: object = {"x": [0.0, 1.0]}
    for depth in range(18):
        notation = {f"c{depth}": {"a": notation, "b": {}}}
    place.space(notation)
    ended = place.run("tune", "--command", "echo 1", "--space", "space.json", "--trials", "1",
                      "--method", "random")  # fmt: skip
    return "" if ended.is_clean else f"exit code {ended.code}"


def floods_choices(place: Place) -> str:
    """Point 4: a million choices are not refused at once."""
    place.space({"c": [f"v{n}" for n in range(1_000_000)]})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = place.run("tune", "--command", "echo 1", "--space", "space.json", "--trials", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime
    return "" if ended.is_clean and seconds < 10.0 else f"{seconds:.0f} s"


def prints_much(place: Place) -> str:
    """Point 5: all that a trial prints is written on."""
    ended = place.tune("prints")
    size = len(ended.err) + len(ended.out)
    return "" if size < 2**20 else f"{size / 2**20:.0f} MiB"


def writes_into_pipes(place: Place) -> str:
    """Point 5: a trial that writes into all descriptors blocks or breaks the command."""
    ended = place.tune("writes")
    return "" if ended.is_clean else f"exit code {ended.code}"


def leaves_daemon(place: Place) -> str:
    """Point 5: a daemon of a trial stays after the command."""
    place.tune("daemon", 1)
    file = place.folder / "pid"
    if not file.exists():
        return "it was not started"
    try:
        os.kill(int(file.read_text()), signal.SIGKILL)
    except ProcessLookupError:
        return ""
    return "it stayed"


def has_bad_port(place: Place) -> str:
    """Point 6: a bad port in the URL of a store gives a traceback."""
    words = ["--store", "postgresql://user@localhost:port/db", "--trials", "1"]
    ended = place.run("tune", "--command", "echo 1", "--space", "space.json", *words)
    return "" if ended.is_clean else "traceback"


def has_surrogate(place: Place) -> str:
    """Point 6: a lone surrogate in a space gives a traceback."""
    (place.folder / "space.json").write_text('{"c": ["\\ud800", "b"]}')
    ended = place.run("tune", "--command", "echo 1", "--space", "space.json", "--trials", "1")
    return "" if ended.is_clean else "traceback"


def shows_rows(place: Place) -> str:
    """Point 6: others may read the rows in the files of a fit."""
    place.table()
    words = ["--trials", "1", "--only", "knn", "--jobs", "1", "-o", "out", "--no-remember"]
    os.umask(0o022)
    place.run("fit", "table.csv", "--target", "y", *words)
    files = list((place.folder / "out").glob("table-*.npz"))
    if not files:
        return "no such file"
    return "readable by all" if any(stat.S_IMODE(f.stat().st_mode) & 0o077 for f in files) else ""


ATTACKS: tuple[Callable[[Place], str], ...] = (
    *(injects, mixes_results, has_no_model, nests, floods_choices, prints_much),
    *(writes_into_pipes, leaves_daemon, has_bad_port, has_surrogate, shows_rows),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parents[2] / "src"
    parser.add_argument("--source", type=Path, default=here, help="the folder that holds foretune")
    parser.add_argument("--only", nargs="+", default=[], help="names of attacks")
    given = parser.parse_args()
    succeeded = 0
    for attack in ATTACKS:
        if given.only and attack.__name__ not in given.only:
            continue
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            found = attack(Place(Path(folder), given.source.resolve()))
        succeeded += bool(found)
        print(f"{attack.__doc__}  {found or 'no'}", flush=True)
    sys.exit(succeeded)


if __name__ == "__main__":
    main()
