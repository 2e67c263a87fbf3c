"""Processes of `foretune tune` on one SQLite file, and on one PostgreSQL or MySQL server.

    python benchmarks/reliability/processes.py --store sqlite --processes 16
    python benchmarks/reliability/processes.py --store postgresql --processes 64
    python benchmarks/reliability/processes.py --store mysql

The servers are Debian's packages, started on loopback by this script on folders of their own
(`apt-get install postgresql`, and `pip install "psycopg[binary]"` for the driver; `apt-get install
mariadb-server-core mariadb-client-core` and `pip install pymysql`).

All processes must end well without a word about locks; the store must hold exactly the trials asked
for, each finished, no configuration twice, each evaluated once. The method is random search and
the function returns at once, so that the store is all there is to wait for: the rate is an upper
bound of what real studies, which evaluate something, ask of it.
"""

import argparse
import getpass
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path

from lives import Ended, import_early, kill, start_life, wait_for
from rows import Row, peak_mb

HERE = Path(__file__).parent
SPACE = {"x": {"range": [0.0, 1.0]}, "kind": {"a": {"rate": {"range": [0.001, 1.0]}}, "b": {}}}
LOG = "evaluations.log"
LONGEST = 1200.0
"""Seconds after which a process counts as hung."""
BINARIES = "/usr/lib/postgresql"
CONNECTIONS = 300
"""More than two for each process: one for the study, and one for its lock."""


def bowl(config: dict) -> float:
    """A trial that notes in a file that it was evaluated."""
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{config['x']!r}\n".encode())
    os.close(descriptor)
    return (config["x"] - 0.3) ** 2


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    newest = max(Path(BINARIES).glob("*/bin"), key=lambda path: int(path.parent.name))
    user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    if user:
        shutil.chown(folder, user)
    port = free_port()

    def call(program: str, *words: str) -> None:
        subprocess.run(
            [newest / program, "-D", folder / "data", *words],
            user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    call("initdb", "-U", "tuner", "--auth=trust")
    where = f"-h 127.0.0.1 -p {port} -k {folder} -c max_connections={CONNECTIONS}"
    call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", where, "start")
    try:
        yield f"postgresql://tuner@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-m", "fast", "stop")
        shutil.rmtree(folder)


@contextmanager
def mysql() -> Iterator[str]:
    """The same of MariaDB, which speaks MySQL's language."""
    folder = Path(tempfile.mkdtemp(prefix="mysql-"))
    data, reach, port = f"--datadir={folder}/data", f"--socket={folder}/socket", free_port()
    user = f"--user={getpass.getuser()}"
    with (folder / "log").open("wb") as log:
        made = ["mariadb-install-db", "--no-defaults", data, user]
        made += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(made, check=True, stdout=log, stderr=log)
        where = ["--bind-address=127.0.0.1", f"--port={port}", reach]
        server = subprocess.Popen(
            ["/usr/sbin/mariadbd", "--no-defaults", data, user, *where], stdout=log, stderr=log
        )
    try:
        ask = ["mariadb", "--no-defaults", reach, "--user=root", "-e", "CREATE DATABASE tuning"]
        while subprocess.run(ask, check=False, stderr=subprocess.DEVNULL).returncode:
            assert server.poll() is None, f"the server ended: see {folder}/log"
            time.sleep(0.5)
        yield f"mysql://root@127.0.0.1:{port}/tuning"
    finally:
        server.terminate()
        server.wait()
    shutil.rmtree(folder)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


SERVERS = {"sqlite": lambda: nullcontext("study.db"), "postgresql": postgresql, "mysql": mysql}


def start(folder: Path, url: str, trials: int, seed: int) -> int:
    """Start a command, as a fork that need not import everything anew, and return its process."""
    words = ["tune", "processes:bowl", "--space", "space.json", "--method", "random"]
    words += ["--store", url, "--trials", str(trials), "--seed", str(seed)]
    said = folder / f"said-{time.monotonic_ns()}.log"
    return start_life(folder, tuple(words), said=said)


def watch(folder: Path, lives: list[int]) -> list[Ended | None]:
    """Wait for all, and say how far they are. Those that hang are killed, and count as None."""
    began, ends = time.monotonic(), {}
    while len(ends) < len(lives) and time.monotonic() < began + LONGEST:
        for life in set(lives) - ends.keys():
            end = wait_for(life, 0.02)
            if end is not None:
                ends[life] = end
        done = len((folder / LOG).read_text().splitlines()) if (folder / LOG).exists() else 0
        print(f"{done} evaluations after {time.monotonic() - began:.0f} s", flush=True)
    for life in set(lives) - ends.keys():
        kill(life)
    return [ends.get(life) for life in lives]


def check(folder: Path, url: str, trials: int) -> float:
    """Read the study with Optuna, and return the seconds from its first to its last trial."""
    import optuna

    from foretune.stores.addresses import storage_url

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    os.chdir(folder)
    study = optuna.load_study(study_name="processes:bowl", storage=storage_url(url))
    found = study.get_trials(deepcopy=False)
    assert [trial.number for trial in found] == list(range(trials))
    assert all(trial.state.name == "COMPLETE" for trial in found)
    xs = [trial.params["x"] for trial in found]
    assert len(set(xs)) == trials, "a configuration occurs twice"
    evaluated = sorted(map(float, (folder / LOG).read_text().split()))
    assert evaluated == sorted(xs), "a trial was evaluated twice, or not at all"
    assert all(trial.value == (trial.params["x"] - 0.3) ** 2 for trial in found)
    first = min(trial.datetime_start for trial in found)
    return (max(trial.datetime_complete for trial in found) - first).total_seconds()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=list(SERVERS), default="sqlite")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--trials", type=int, default=2000)
    given = parser.parse_args()
    what = f"{given.processes} processes of tune on one store, {given.store}"
    if given.store == "postgresql" and not (Path(BINARIES).exists() and find_spec("psycopg")):
        Row(what, 0, skipped="PostgreSQL or psycopg is not installed").print()
        return
    import_early(only_tune=True)
    folder = Path(tempfile.mkdtemp(prefix="processes-"))
    (folder / "space.json").write_text(json.dumps(SPACE))
    with SERVERS[given.store]() as url:
        began = time.monotonic()
        # The same seed everywhere: without care they would all suggest the same.
        lives = [start(folder, url, given.trials, seed=0) for _ in range(given.processes)]
        ends = watch(folder, lives)
        elapsed = time.monotonic() - began
        for path in folder.glob("said-*.log"):
            text = path.read_text()
            assert "locked" not in text, text
            assert "Traceback" not in text, text
        assert all(end is not None and end.code == 0 for end in ends), (ends, folder)
        seconds = check(folder, url, given.trials)
    Row(
        what, given.trials,
        longest_s=round(elapsed, 1), peak_mb=round(peak_mb()),
        note=f"{given.trials / seconds:.1f} suggestions/s",
    ).print()  # fmt: skip
    print(f"{given.trials / seconds:.1f} suggestions/s from the first trial to the last")
    print(f"{seconds:.0f} s, {elapsed:.0f} s with the start of the processes")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
