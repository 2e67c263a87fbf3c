import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest

from foretune.errors import UsageError
from foretune.experience import Status
from foretune.run.executor import Limits
from foretune.run.inline import InlineExecutor
from foretune.run.limit_watch import Patience
from foretune.run.pool import ProcessPool
from foretune.run.worker_start import WorkerFromNothing
from tests.refusals import refuses
from tests.run.jobs import Prepared, SlowToImport, Unimportable, do, parent_of, square


def outcomes(executor, jobs):
    keys = [executor.submit(job) for job in jobs]
    found = {}
    while batch := executor.results():
        found.update({outcome.key: outcome for outcome in batch})
    return [found[key] for key in keys]


def alive(pid):
    try:
        said = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # before it is opened, or just after that
        return False
    return "Z" not in said.rsplit(")", 1)[1].split()[0]


def gone(pid, within=60.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def shared():
    """A pool of one worker, for tests that leave it as good as new."""
    with ProcessPool(do, limits=Limits(wall_seconds=60.0)) as pool:
        yield pool


def test_a_function_is_prepared_once_in_each_worker():
    with ProcessPool(Prepared(), workers=1) as pool:
        assert [outcome.result for outcome in outcomes(pool, range(3))] == [1, 1, 1]


@pytest.mark.parametrize("make", [InlineExecutor, ProcessPool], ids=["inline", "processes"])
def test_both_executors_answer_alike(make):
    with make(do) as executor:
        done, failed, left = outcomes(executor, [("give", 5), ("raise", "a\nb"), "leave"])
    assert (done.status, done.result, done.reason) == (Status.DONE, 5, "")
    assert (failed.status, failed.result, failed.reason) == (
        Status.FAILED,
        None,
        "ValueError: a b",
    )
    assert (left.status, left.reason) == (Status.FAILED, "SystemExit: 3")
    assert 0 <= done.seconds < 1


def check(found, expected):
    for outcome, (status, reason) in zip(found, expected, strict=True):
        assert (outcome.status, outcome.reason[: len(reason)]) == (status, reason)
        assert "\n" not in outcome.reason


def test_each_fault_costs_its_own_trial_and_is_named():
    limits = Limits(wall_seconds=5.0, cpu_seconds=0.4)
    with ProcessPool(do, workers=2, limits=limits) as pool:
        found = outcomes(pool, ["hang", "die", ("burn", 30), "vanish", "unsendable", ("give", 1)])
    expected = [
        (Status.TIMEOUT, "over its limit of 5 s"),
        (Status.FAILED, "the worker process was killed by signal SIGKILL"),
        (Status.TIMEOUT, "over its limit of 0.4 s of CPU time"),
        (Status.FAILED, "the worker process ended with exit code 7"),
        (Status.FAILED, "the result cannot be sent between processes"),
        (Status.DONE, ""),
    ]
    check(found, expected)
    assert found[2].seconds == 0.4


def test_a_result_that_cannot_travel_costs_its_trial_and_no_worker(shared):
    found = outcomes(shared, ["pid", "unopenable", "unpackable", "unsendable", "pid"])
    lost = (Status.FAILED, "the result cannot be sent between processes: ")
    check(found, [(Status.DONE, ""), lost, lost, lost, (Status.DONE, "")])
    assert found[1].reason.startswith(f"{lost[1]}TypeError: ")
    assert found[2].reason.startswith(f"{lost[1]}KeyError: ")
    assert found[0].result == found[-1].result


def test_an_interrupt_of_the_functions_own_making_costs_its_trial_and_no_worker(shared, capfd):
    found = outcomes(shared, ["pid", "interrupt", "pid"])
    check(found, [(Status.DONE, ""), (Status.FAILED, "KeyboardInterrupt"), (Status.DONE, "")])
    assert found[0].result == found[-1].result
    assert "Traceback" not in capfd.readouterr().err


def test_a_function_that_cannot_be_sent_is_refused_in_a_sentence():
    with refuses("worker-import", kind=UsageError):
        ProcessPool(lambda job: job)


def test_memory_exhausted_bit_by_bit_or_at_once_costs_one_trial():
    with ProcessPool(do, workers=2, limits=Limits(memory_bytes=400 * 2**20)) as pool:
        found = outcomes(pool, [("eat", 5000), "eat_at_once", ("give", 1)])
    expected = [
        (Status.FAILED, "out of memory: over its limit of 400 MB"),
        (Status.FAILED, "out of memory: "),
        (Status.DONE, ""),
    ]
    check(found, expected)


def test_a_worker_is_kept_from_trial_to_trial():
    with ProcessPool(do) as pool:
        pids = [outcome.result for outcome in outcomes(pool, ["pid"] * 5)]
    assert len(set(pids)) == 1
    assert pids[0] != os.getpid()
    assert gone(pids[0])


def test_a_worker_that_is_killed_while_idle_costs_no_trial(shared):
    [first] = outcomes(shared, ["pid"])
    supervisor = parent_of(first.result)
    os.kill(first.result, signal.SIGKILL)
    assert gone(supervisor)
    later = outcomes(shared, [("give", 1), ("give", 2), ("give", 3)])
    assert [o.result for o in later] == [1, 2, 3]


def test_a_running_worker_is_killed_from_outside(shared):
    [first] = outcomes(shared, ["pid"])
    shared.submit("hang")
    assert shared.results(timeout=0.2) == []
    os.kill(first.result, signal.SIGKILL)
    [outcome] = shared.results()
    assert outcome.reason == "the worker process was killed by signal SIGKILL"


def test_time_in_which_everything_was_stopped_is_not_the_time_of_a_trial():
    stopped = [0.0]
    patience = Patience(clock=lambda: time.monotonic() + stopped[0])
    with ProcessPool(do, limits=Limits(wall_seconds=60.0), patience=patience) as pool:
        outcomes(pool, ["pid"])
        pool.submit(("burn", 0.5))
        assert pool.results(timeout=0.01) == []
        # As if an hour went by between two looks.
        stopped[0] = 3600.0
        [outcome] = pool.results()
    assert outcome.status == Status.DONE


def test_limits_hold_while_the_parent_does_something_else():
    limits = Limits(wall_seconds=60.0, memory_bytes=400 * 2**20)
    with ProcessPool(do, limits=limits) as pool:
        [first] = outcomes(pool, ["pid"])
        pool.submit(("eat_and_hang", 500))
        assert gone(first.result)
        [outcome] = pool.results()
    check([outcome], [(Status.FAILED, "out of memory: over its limit of 400 MB")])


def test_an_answer_that_nobody_reads_is_in_time():
    with ProcessPool(do, limits=Limits(wall_seconds=0.5)) as pool:
        outcomes(pool, ["pid"])
        pool.submit(("give", 5))
        time.sleep(1.0)
        [outcome] = pool.results()
    assert (outcome.status, outcome.result) == (Status.DONE, 5)


def test_a_worker_that_is_never_ready_is_one_clear_error():
    with (
        ProcessPool(SlowToImport(), patience=Patience(start=0.1)) as pool,
        refuses("worker-start"),
    ):
        outcomes(pool, [1])


def test_also_one_that_hangs_before_it_reads_a_large_function():
    hangs = partial(WorkerFromNothing, program="import time; time.sleep(20)")
    large = partial(do, bytes(10**7))
    with (
        ProcessPool(large, patience=Patience(start=0.1), start_worker=hangs) as pool,
        refuses("worker-start"),
    ):
        outcomes(pool, [1])


def test_workers_of_a_pool_that_is_given_up_end():
    pool = ProcessPool(do)
    [first] = outcomes(pool, ["pid"])
    del pool
    gc.collect()
    assert gone(first.result)


def test_results_arrive_as_they_finish():
    with ProcessPool(do, workers=2) as pool:
        outcomes(pool, ["pid"] * 4)
        slow, fast = pool.submit("hang"), pool.submit(("give", "early"))
        [outcome] = pool.results()
        assert (outcome.key, outcome.result) == (fast, "early")
        assert pool.results(timeout=0.05) == []
        assert slow != fast


def test_nothing_to_wait_for_is_no_wait(shared):
    assert shared.results() == []
    [outcome] = outcomes(shared, [("give", 9)])
    assert outcome.result == 9


def test_workers_compute_with_one_thread_and_leave_the_parent_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with ProcessPool(do) as pool:
        [outcome] = outcomes(pool, ["threads"])
    assert outcome.result == "1"
    assert os.environ["OMP_NUM_THREADS"] == "5"


def test_cpu_seconds_are_those_of_the_trial(shared):
    [outcome] = outcomes(shared, [("burn", 0.3)])
    assert 0.28 <= outcome.seconds < 0.6


def test_the_cpu_limit_begins_anew_with_each_trial():
    with ProcessPool(do, limits=Limits(cpu_seconds=0.4)) as pool:
        found = outcomes(pool, [("burn", 0.25)] * 3)
    assert [outcome.status for outcome in found] == [Status.DONE] * 3


def test_processes_of_a_trial_end_with_it():
    with ProcessPool(do, limits=Limits(wall_seconds=3.0)) as pool:
        [first] = outcomes(pool, ["pid"])
        pool.submit("child")
        children = ""
        while not children:
            assert pool.results(timeout=0.05) == []
            listing = subprocess.run(
                ["pgrep", "-P", str(first.result)], capture_output=True, text=True, check=False
            )
            children = listing.stdout
        [outcome] = pool.results()
    assert outcome.status == Status.TIMEOUT
    assert gone(int(children.split()[-1]))


def test_a_worker_that_dies_before_what_it_started_costs_its_trial_and_leaves_nothing(
    shared, tmp_path
):
    jobs = [("die_before_its_child", tmp_path / "child"), ("give", 5)]
    died, next_one = outcomes(shared, jobs)
    assert died.reason == "the worker process was killed by signal SIGKILL"
    assert next_one.result == 5
    assert gone(int((tmp_path / "child").read_text()))


def test_a_worker_that_is_asked_to_stop_leaves_that_to_its_parent(shared):
    [outcome] = outcomes(shared, ["asked_to_stop"])
    assert (outcome.result, outcome.reason) == ("alive", "")


@pytest.mark.parametrize("what", ["stop_command", "stop_fork", "stop_fork_of_thread"])
def test_programs_of_a_trial_can_be_asked_to_stop(what, shared):
    [outcome] = outcomes(shared, [what])
    assert (outcome.result, outcome.reason) == (-signal.SIGTERM, "")


def test_a_trial_may_use_a_pool_of_forks(shared):
    [outcome] = outcomes(shared, ["pool_of_forks"])
    assert (outcome.result, outcome.reason) == ([4, 9], "")


def test_a_function_that_workers_cannot_load_is_one_clear_error(capfd):
    with (
        ProcessPool(Unimportable()) as pool,
        refuses("worker-import"),
    ):
        outcomes(pool, [1])
    capfd.readouterr()


PROGRAM = """
    import sys
    from foretune.run.pool import ProcessPool
    from tests.run.jobs import do

    # Without the guard that multiprocessing asks for: nothing in this file is run twice.
    with ProcessPool(do) as pool:
        pool.submit("pid")
        print(pool.results()[0].result, flush=True)
        pool.submit("hang")
        pool.results()
"""


def written(tmp_path, program):
    """A program in a file, and the environment it runs in."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    root = Path(__file__).parents[2]
    return path, {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}


@pytest.fixture
def program(tmp_path):
    """A program whose worker hangs: (process, pid of the worker)."""
    path, environment = written(tmp_path, PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    yield process, int(process.stdout.readline())
    process.kill()
    process.communicate()


def test_ctrl_c_stops_at_once_and_leaves_nothing(program):
    process, worker = program
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    assert gone(worker)


def test_workers_do_not_outlive_a_parent_that_is_killed(program):
    process, worker = program
    time.sleep(0.2)
    process.kill()
    assert gone(worker)


OWN_FUNCTION = """
    from foretune.run.pool import ProcessPool

    def double(x):
        return 2 * x

    if __name__ == "__main__":
        with ProcessPool(double) as pool:
            pool.submit(21)
            print(pool.results()[0].result)
"""


def test_a_function_of_the_program_itself(tmp_path):
    path, environment = written(tmp_path, OWN_FUNCTION)
    command = [sys.executable, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout.strip() == "42"


@pytest.mark.parametrize("limit", [{"wall_seconds": 0}, {"memory_bytes": -1}])
def test_limits_are_positive(limit):
    with refuses("not-positive", field=next(iter(limit))):
        Limits(**limit)


def test_a_pool_has_a_worker():
    with refuses("no-workers", value=0):
        ProcessPool(square, workers=0)
