"""Ten thousand spoilt files for every reader: each is loaded or refused, and nothing else happens.

    python benchmarks/reliability/fuzz.py
    python benchmarks/reliability/fuzz.py --reader model --seeds 500-900

Readers and mutations are those of `tests/hostile`. An input is a function of the reader's name and
a seed, so any range of seeds can be run again or added. Inputs are read in a child process: one
that dies, takes too long, or needs more memory than it may is found like any other exception, and
the next child goes on after it.
"""

import argparse
import contextlib
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from parts import run_parts
from rows import Row, peak_mb

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

SECONDS = 10.0
"""CPU time that an input may take."""
PATIENCE = 120.0
"""And on the clock, of a machine that does other things."""
MEMORY = 2**31
"""Bytes that may be allocated beyond what the process had before its first input."""
METHODS = ("auto", "gcp-prior", "zero-shot", "ws-gp", "rgpe", "ablr", "fsbo", "deeppipe",
           "latent-cash", "pretrained-gps", "as-ml", "oboe", "gp")  # fmt: skip
ALGORITHMS = ("naive_bayes", "rf", "lightgbm", "hist_boosting", "logistic", "knn", "svm", "mlp")
SHARES = {
    "space JSON": 2500,
    "experience": 1500,
    "portfolio": 800,
    "model": 500,
    "booster": 3000,
    "table to fit (CSV)": 400,
    "table to fit (Parquet)": 300,
    "table to predict (CSV)": 300,
    "table to predict (Parquet)": 200,
    "prepared table": 500,
    "manifest": 600,
    "journal": 800,
    "memory": 260,
    "table of evaluations": 300,
    "HPO-B": 260,
}
"""Inputs of each reader; every prior gets `PRIOR_SHARE`."""
PRIOR_SHARE = 60


def run_child(reader, seeds: range, folder: Path, told: int) -> None:
    """Read one input after the other, and say what came of each on a pipe."""
    from tests.hostile.readers import outcome

    # Of data, not of addresses: libraries reserve many of these for threads.
    held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, held + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        began = time.process_time()
        try:
            result = outcome(reader, seed, place)
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [f for f in frames if "foretune" in f.filename] or frames
            said = " ".join(str(error).split())[:120].replace("\t", " ")
            where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            result = f"{type(error).__name__} in {where}: {said}"
        took = time.process_time() - began
        if took > SECONDS:
            result = f"took {took:.0f} s"
        if result in ("loaded", "refused"):
            shutil.rmtree(place)
        line = f"{seed}\t{took:.4f}\t{result}\n"
        os.write(told, line.encode(errors="replace"))


def results(reader, seeds: range, folder: Path) -> Iterator[tuple[int, float, str]]:
    """(seed, CPU seconds, what came of it) of every seed, whatever happens to the children."""
    ahead = seeds.start
    while ahead < seeds.stop:
        listens, tells = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(listens)
            try:
                run_child(reader, range(ahead, seeds.stop), folder, tells)
            finally:
                os._exit(0)
        os.close(tells)
        for line in _lines(listens):
            seed, took, result = line.split("\t", 2)
            ahead = int(seed) + 1
            yield int(seed), float(took), result
        os.close(listens)
        _end(child)
        if ahead < seeds.stop:
            yield ahead, PATIENCE, "the process died, or did not come to an end"
            ahead += 1


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _lines(pipe: int) -> Iterator[str]:
    """What a child says, until it ends or is silent for too long."""
    rest = b""
    while select.select([pipe], [], [], PATIENCE)[0]:
        block = os.read(pipe, 1 << 16)
        if not block:
            return
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", default="", help="A regular expression for their names.")
    parser.add_argument("--seeds", help="FROM-TO instead of 0 to the reader's share.")
    parser.add_argument("--keep", type=Path, help="Folder for the inputs that failed.")
    parser.add_argument("--whole", type=Path, help="Folder that keeps the files to spoil.")
    parser.add_argument("--jobs", type=int, default=1, help="readers at the same time")
    given = parser.parse_args()
    from tests.hostile.readers import all_readers

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    wanted = re.compile(given.reader)
    # Learning the priors takes a while, so only those that are asked for are learnt.
    methods = [name for name in METHODS if wanted.search(f"prior of {name}")]
    whole = given.whole or folder / "whole"
    whole.mkdir(parents=True, exist_ok=True)
    if os.fork() == 0:  # learning starts threads, and no process with threads should fork
        all_readers(whole, methods=tuple(methods), algorithms=ALGORITHMS)
        os._exit(0)
    os.wait()
    readers = all_readers(whole, methods=tuple(methods), algorithms=ALGORITHMS)
    READERS.update({each.name: each for each in readers if wanted.search(each.name)})
    parts = [Part(name, *_range(name, given.seeds), folder, given.keep) for name in READERS]
    totals, failures = Counter(), []
    print("| reader | inputs | loaded | refused | uncaught | slowest |", flush=True)
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    for part, (counts, slowest, failed) in run_parts(read_many, parts, given.jobs):
        totals += counts
        failures += failed
        print(_row(part.name, counts, f"{slowest:.2f} s"), flush=True)
        Row(
            f"altered file: {part.name}",
            count=sum(counts.values()),
            wrong=counts["uncaught"],
            refused=counts["refused"],
            longest_s=round(slowest, 2),
            peak_mb=round(peak_mb()),
            note="; ".join(failed[:2]),
        ).print()
    print(_row("all", totals, ""))
    shutil.rmtree(folder)
    sys.exit(1 if failures else 0)


READERS: dict[str, Any] = {}
"""By name: they hold functions, which no process can send to another one."""


class Part(NamedTuple):
    """Some inputs of one reader."""

    name: str
    first: int
    last: int
    folder: Path
    keep: Path | None


def _range(name: str, given: str | None) -> tuple[int, int]:
    if given:
        first, last = given.split("-")
        return int(first), int(last)
    return 0, SHARES.get(name, PRIOR_SHARE)


def read_many(part: Part) -> tuple[Counter, float, list[str]]:
    """What came of the inputs, the CPU seconds of the slowest one, and the faults in words."""
    folder = part.folder / part.name.replace(" ", "-")
    folder.mkdir()
    counts, slowest, failed = Counter(), 0.0, []
    for seed, took, result in results(READERS[part.name], range(part.first, part.last), folder):
        slowest = max(slowest, took)
        if result in ("loaded", "refused"):
            counts[result] += 1
        else:
            counts["uncaught"] += 1
            failed.append(f"{part.name}, seed {seed}: {result}")
            print(failed[-1], file=sys.stderr, flush=True)
            if part.keep:
                place = part.keep / f"{part.name}-{seed}".replace(" ", "-")
                shutil.copytree(folder / str(seed), place, dirs_exist_ok=True)
        if (folder / str(seed)).exists():
            shutil.rmtree(folder / str(seed))
    return counts, slowest, failed


def _row(name: str, counts: Counter, slowest: str) -> str:
    parts = [sum(counts.values()), *(counts[each] for each in ("loaded", "refused", "uncaught"))]
    return f"| {name} | {' | '.join(f'{part:,}' for part in parts)} | {slowest} |"


if __name__ == "__main__":
    main()
