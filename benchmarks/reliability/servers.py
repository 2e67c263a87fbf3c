"""Database servers on loopback, each with a folder of its own: Debian's packages.

`apt-get install postgresql` and `pip install "psycopg[binary]"`, or `apt-get install
mariadb-server-core mariadb-client-core` and `pip install pymysql`.
"""

import getpass
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

POSTGRESQL = Path("/usr/lib/postgresql")
CONNECTIONS = 300
"""More than two for each of 64 processes: one for the study, and one for its lock."""


def why_no_postgresql() -> str:
    """Return what is missing for a PostgreSQL server; empty if nothing is."""
    has_all = bool(_program("initdb")) and find_spec("psycopg") is not None
    return "" if has_all else "needs PostgreSQL's initdb and the package psycopg"


class Postgres:
    """A server that can be stopped, killed, and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
        if self._user:
            shutil.chown(folder, self._user)
        self._port = free_port()
        self.url = f"postgresql://tuner@127.0.0.1:{self._port}/postgres"
        self._call("initdb", "-U", "tuner", "--auth=trust", "--no-sync")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        where = f"-h 127.0.0.1 -p {self._port} -k {self._folder}"
        options = f"{where} -c max_connections={CONNECTIONS}"
        self._call("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        """`fast` ends all connections; `immediate` is a kill, after which the server recovers."""
        self._call("pg_ctl", "-m", how, "-w", "stop")

    def _call(self, program: str, *words: str) -> None:
        subprocess.run(
            [_program(program), "-D", str(self._folder / "data"), *words],
            user=self._user,
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _program(name: str) -> str:
    """The newest one of Debian, which is not on the path."""
    found = POSTGRESQL.glob(f"*/bin/{name}")
    newest = max(found, key=lambda path: int(path.parts[-3]), default=None)
    return str(newest or shutil.which(name) or "")


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    server = Postgres(folder)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
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
    """A port that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


SERVERS = {"sqlite": lambda: nullcontext("study.db"), "postgresql": postgresql, "mysql": mysql}
