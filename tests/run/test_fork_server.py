"""Workers that a server forks are as those that start from nothing, and outlive the server."""

import os
import resource
import signal
import subprocess
import sys

import pytest

from foretune.experience import Status
from foretune.run.executor import Limits
from foretune.run.pool import ProcessPool
from foretune.run.worker_start import ForkedWorker, WorkerFromNothing, WorkerStarter, libraries_of
from tests.run.glimpses import WithLibraries, look
from tests.run.jobs import do
from tests.run.test_pool import alive, gone, outcomes, written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a fork server")

WITHIN = Limits(wall_seconds=60.0)


@pytest.fixture
def starter():
    made = WorkerStarter()
    yield made
    made.end()


def test_a_killed_server_costs_no_trial(starter):
    with ProcessPool(do, limits=WITHIN, start_worker=starter) as pool:
        outcomes(pool, ["pid"])
        pool.submit(("burn", 0.3))
        first = starter.server
        os.kill(first.pid, signal.SIGKILL)
        [outcome] = pool.results()
        assert outcome.status is Status.DONE
        died, given = outcomes(pool, ["die", ("give", 5)])
    assert died.status is Status.FAILED
    assert given.result == 5
    assert starter.server.pid != first.pid


def test_a_server_that_dies_again_and_again_is_done_without(starter):
    for _ in range(3):
        starter.load([])
        os.kill(starter.server.pid, signal.SIGKILL)
        assert gone(starter.server.pid)
    with ProcessPool(do, start_worker=starter) as pool:
        assert outcomes(pool, [("give", 3)])[0].result == 3
    assert starter.server is None


def test_workers_do_not_share_their_random_numbers(starter):
    function = WithLibraries("numpy.random")
    with ProcessPool(function, workers=2, limits=WITHIN, start_worker=starter) as pool:
        found = [outcomes(pool, ["draw"] * 4)]
    with ProcessPool(function, limits=WITHIN, start_worker=starter) as pool:
        found.append(outcomes(pool, ["draw"]))
    drawn = [each.result for some in found for each in some]
    assert len({number for number, _ in drawn}) == len({text for _, text in drawn}) == 5


@pytest.mark.parametrize("what", [("surroundings", "FT_TEST"), "signals", "descriptors"])
def test_a_forked_worker_is_as_one_from_nothing(what, starter, monkeypatch, tmp_path):
    starter.load([])
    monkeypatch.setenv("FT_TEST", "later")
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    mask = os.umask(0o27)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        seen = []
        for start in (starter, WorkerFromNothing):
            with ProcessPool(look, limits=WITHIN, start_worker=start) as pool:
                seen += [each.result for each in outcomes(pool, [what])]
    finally:
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert seen[0] == seen[1]
    assert what[0] != "surroundings" or seen[0][:4] == (
        "later",
        str(tmp_path),
        (soft - 1, hard),
        0o27,
    )


def test_a_server_loads_once_what_all_workers_need(starter):
    function = WithLibraries("wave")
    with ProcessPool(function, limits=WITHIN, start_worker=starter) as pool:
        found = outcomes(pool, [("modules", "wave"), "server_of_worker"])
    assert [each.result for each in found] == [True, starter.server.pid]


def test_a_server_with_two_threads_forks_nothing(starter):
    function = WithLibraries("tests.run.threaded")
    with ProcessPool(function, limits=WITHIN, start_worker=starter) as pool:
        found = outcomes(pool, [("modules", "tests.run.threaded"), "server_of_worker"])
    assert [each.result for each in found] == [False, starter.server.pid]


def test_a_process_that_has_changed_gets_another_server(starter, monkeypatch):
    starter.load([])
    first = starter.server
    starter.load([])
    assert starter.server is first
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    starter.load([])
    assert starter.server is not first
    assert gone(first.pid)


def test_processes_left_by_a_trial_end_without_its_watcher_too(starter, tmp_path):
    file = tmp_path / "daemon"
    with ProcessPool(look, limits=WITHIN, start_worker=starter) as pool:
        [outcome] = outcomes(pool, [("kill_watching_process", file)])
    assert outcome.status is Status.FAILED
    assert "SIGKILL" in outcome.reason
    assert gone(int(file.read_text()), within=10.0)


def test_a_server_ends_with_the_process_that_uses_it(tmp_path):
    program = """
        import os, signal
        from foretune.run.worker_start import start_worker

        start_worker.load(["numpy"])
        print(start_worker.server.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    path, environment = written(tmp_path, program)
    said = subprocess.run(
        [sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, check=False
    )
    assert gone(int(said.stdout), within=10.0)


def test_a_fork_leaves_the_server_to_the_process_that_has_it():
    from foretune.run.worker_start import start_worker

    start_worker.load([])
    pid = start_worker.server.pid
    if not (child := os.fork()):
        start_worker.end()
        os._exit(start_worker.server is not None)
    assert os.waitpid(child, 0)[1] == 0
    assert alive(pid)
    assert start_worker.server.pid == pid


def test_a_worker_that_says_nothing_at_its_end_was_killed():
    heard, ending = os.pipe()
    worker = ForkedWorker(heard)
    assert worker.poll() is None
    os.close(ending)
    assert worker.poll() == worker.wait() == -signal.SIGKILL


def test_a_server_imports_what_the_module_of_a_function_has_imported():
    assert libraries_of(WithLibraries("wave")) == ("wave",)
    found = libraries_of(do)
    assert "numpy" in found
    assert not {"os", "pytest", "tests.run.jobs"} & set(found)
