"""A Ray cluster of several nodes, one of which is killed while `foretune tune` uses it.

    python benchmarks/reliability/ray_nodes.py [--nodes 3] [--trials 60]

The nodes are local: each has a Ray daemon and worker processes of its own, which end at once when
the node is killed. The study is in PostgreSQL. The command must go on on the other nodes and end
well. The same command with more trials must then continue the study. Each trial must be stored once
with the right result. Only trials that were running on the killed node may be begun twice.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bowl import LOG, SECONDS, bowl, note
from commands import TUNE, prepare
from lives import environment, run_fresh
from rows import Row
from servers import postgresql, why_no_postgresql
from tally import SAID, Ended, Tally, read

from stores import cell, compare, read_trials

ATTACK = "one of the nodes of a Ray cluster is killed"
BEGAN = "began.log"
CPUS = 2
"""Trials that a node runs at the same time."""
STORE_MB = 80
"""The least memory for objects that Ray takes."""
LONGEST = 300.0


def start_cluster(folder: Path, nodes: int) -> tuple[Any, list[Any]]:
    """A head that runs no trials, and nodes that do."""
    os.environ.update(environment(folder))
    os.chdir(folder)  # the nodes inherit it, and trials note their evaluations there
    from ray.cluster_utils import Cluster

    sizes = {"object_store_memory": STORE_MB * 2**20}
    head = {"num_cpus": 0, "include_dashboard": False, **sizes}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    return cluster, [cluster.add_node(num_cpus=CPUS, **sizes) for _ in range(nodes)]


def words(store: str, address: str, jobs: int, trials: int) -> tuple[str, ...]:
    stand_ins = {"study.db": store, "bowl:bowl": "ray_nodes:bowl_of_a_node"}
    found = tuple(stand_ins.get(word, word) for word in TUNE)
    where = ("--executor", "ray", "--address", address, "--jobs", str(jobs))
    return (*found, *where, "--study", "nodes", "--trials", str(trials))


def bowl_of_a_node(config: dict) -> float:
    """A trial that also notes in a file that it began."""
    note(BEGAN, config["x"])
    return bowl(config)


def evaluations(folder: Path, log: str = LOG) -> list[float]:
    return [float(x) for x in read(folder / log).split()]


def wait(life: subprocess.Popen, began: float) -> Ended | None:
    try:
        code = life.wait(LONGEST)
    except subprocess.TimeoutExpired:
        life.kill()
        return None
    return Ended(code, time.monotonic() - began, 0.0)


def check(folder: Path, store: str, trials: int, reruns: int, tally: Tally) -> dict[int, Any]:
    """The ended trials. Blame what is lost, doubled or wrong.

    reruns: how many trials may have been evaluated a second time.
    """
    import psycopg

    with closing(psycopg.connect(store)) as connection:
        ended, running = read_trials(connection, tally)
    compare({}, ended, running, 0, tally)
    if len(ended) != trials:
        tally.blame("lost", f"{len(ended)} of {trials} trials are stored")
    times = Counter(evaluations(folder))
    if sum(times.values()) > trials + reruns or max(times.values(), default=0) > 2:
        tally.blame("doubled", f"{sum(times.values())} evaluations of {trials} trials")
    for number, trial in ended.items():
        x, value = cell(trial, "trial_params", "x"), cell(trial, "trial_values", 0)
        if trial[0] != "COMPLETE" or abs(value - (x - 0.3) ** 2) > 1e-12 or not times[x]:
            tally.blame("wrong", f"trial {number} is {trial}, evaluated {times[x]} times")
    return ended


def attack(folder: Path, nodes: int, trials: int, tally: Tally) -> str:
    """Kill a node after a third of the trials, and continue the study when all have ended."""
    prepare(folder)
    os.environ[SECONDS] = "1.0"
    with postgresql() as store:
        cluster, members = start_cluster(folder, nodes)
        try:
            jobs = nodes * CPUS
            began = time.monotonic()
            life = run_fresh(folder, words(store, cluster.address, jobs, trials))
            while len(evaluations(folder)) < trials // 3 and life.poll() is None:
                time.sleep(0.05)
            done = len(evaluations(folder))
            cluster.remove_node(members[-1], allow_graceful=False)
            tally.count += 1
            tally.check_end(wait(life, began), folder, 0)
            before = check(folder, store, trials, CPUS, tally)
            again = len(evaluations(folder, BEGAN)) - trials
            if not again:
                tally.blame("wrong", "the node that was killed ran no trial")
            began, more = time.monotonic(), trials + trials // 5
            life = run_fresh(folder, words(store, cluster.address, jobs, more))
            tally.check_end(wait(life, began), folder, 0)
            after = check(folder, store, more, CPUS, tally)
            compare(before, after, {}, 0, tally)
        finally:
            cluster.shutdown()
    return (
        f"{nodes} nodes of {CPUS} trials each, killed after {done} of {trials} trials; {again} "
        f"were begun again; continued to {more}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--short", action="store_true", help="two nodes, 20 trials")
    given = parser.parse_args()
    if find_spec("ray") is None or why_no_postgresql():
        Row(ATTACK, 0, skipped="Ray, PostgreSQL or psycopg is not installed").print()
        return
    nodes, trials = (2, 20) if given.short else (given.nodes, given.trials)
    tally = Tally()
    folder = Path(tempfile.mkdtemp(prefix="nodes-"))
    summary = attack(folder, nodes, trials, tally)
    tally.row(ATTACK, summary).print()
    if tally.said:
        print(read(folder / SAID)[-3000:], file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
