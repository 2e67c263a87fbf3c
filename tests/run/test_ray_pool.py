"""On a real Ray: a driver, a scheduler, and worker processes that may be killed."""

import math
import os
import signal
import sys
import time

import pytest

from foretune.experience import Status
from foretune.run.executor import Limits
from foretune.run.executor_choice import ExecutorChoice
from foretune.run.ray_pool import ADDRESS_VARIABLE, MOST_RERUNS, RayPool
from tests.refusals import refuses
from tests.run import reporting
from tests.run.jobs import do, parent_of_worker
from tests.run.test_pool import outcomes


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with refuses("missing-extra", field="ray"):
        RayPool(do)


def test_an_address_needs_ray():
    with refuses("address-without-ray", value="auto"):
        ExecutorChoice(address="auto")


@pytest.mark.parametrize(("address", "rule"), [(None, "ray-start"), ("auto", "ray-address")])
def test_a_cluster_that_is_not_to_be_had_is_one_sentence(address, rule, monkeypatch):
    ray = pytest.importorskip("ray")

    def overloaded(*given, **settings):
        raise Exception("The current node timed out during startup.")

    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    monkeypatch.setattr(ray, "init", overloaded)
    with RayPool(do, address=address) as pool, refuses(rule):
        pool.start()


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def note_and_wait(job):
    """Write down who runs it (which Ray worker), and wait for what it waits for."""
    folder, name, waits = job
    with (folder / f"{name}.began").open("a") as stream:
        stream.write(f"{parent_of_worker()}\n")
    while waits and not (folder / "go").exists():
        time.sleep(0.02)
    return name


def began(folder, name, times=1, within=120.0):
    """The Ray workers that have begun a job so far, as soon as there are so many."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        path = folder / f"{name}.began"
        found = path.read_text().split() if path.exists() else []
        if len(found) >= times:
            return [int(pid) for pid in found]
        time.sleep(0.02)
    raise TimeoutError(name)


def test_a_killed_ray_worker_loses_no_trial_and_doubles_none(cluster, tmp_path):
    with RayPool(note_and_wait, workers=2) as pool:
        keys = {pool.submit((tmp_path, n, n == 0)): n for n in range(8)}
        os.kill(began(tmp_path, 0)[0], signal.SIGKILL)
        (tmp_path / "go").touch()
        found = []
        while batch := pool.results():
            found += batch
    assert sorted(outcome.key for outcome in found) == sorted(keys)
    assert all(outcome.status is Status.DONE for outcome in found)
    assert all(outcome.result == keys[outcome.key] for outcome in found)
    assert len(began(tmp_path, 0)) == 2


def test_a_straggler_holds_up_nothing_but_itself(cluster, tmp_path):
    with RayPool(note_and_wait, workers=2) as pool:
        straggler = pool.submit((tmp_path, "slow", True))
        others = {pool.submit((tmp_path, n, False)) for n in range(4)}
        found = set()
        while found < others:
            found |= {outcome.key for outcome in pool.results()}
        assert found == others
        (tmp_path / "go").touch()
        assert [outcome.key for outcome in pool.results()] == [straggler]


def test_faults_of_trials_are_theirs_and_are_not_retried(cluster):
    limits = Limits(wall_seconds=2.0, memory_bytes=500 * 2**20)
    jobs = [("raise", "a\nb"), "die", "hang", ("eat", 1500), "unsendable", ("give", 5)]
    with RayPool(do, workers=2, limits=limits) as pool:
        found = outcomes(pool, jobs)
    expected = [
        (Status.FAILED, "ValueError: a b"),
        (Status.FAILED, "the worker process was killed by signal SIGKILL"),
        (Status.TIMEOUT, "over its limit of 2 s"),
        (Status.FAILED, "out of memory: over its limit of 500 MB"),
        (Status.FAILED, "the result cannot be sent between processes"),
        (Status.DONE, ""),
    ]
    for outcome, (status, reason) in zip(found, expected, strict=True):
        assert (outcome.status, outcome.reason[: len(reason)]) == (status, reason)
    assert found[-1].result == 5


# Reports


class Heard:
    """Keeps the steps of all reports by job, and asks each to stop at a step."""

    def __init__(self, stop_at=math.inf):
        self.steps, self.stop_at = {}, stop_at

    def __call__(self, key, reports):
        self.steps.setdefault(key, []).extend(report.step for report in reports)
        return reports[-1].step >= self.stop_at


def end_of(pool):
    """The outcome of the only job."""
    while True:
        if found := pool.results(timeout=60.0):
            return found[0]


def test_reports_arrive_in_order_and_a_trial_stops_when_it_is_asked_to(cluster):
    heard = Heard(stop_at=3)
    with RayPool(reporting.losses, workers=2) as pool:
        pool.listen(heard)
        long, short = pool.submit(10**6), pool.submit(2)
        found = {}
        while batch := pool.results():
            found |= {outcome.key: outcome for outcome in batch}
    assert found[short].result == 2
    assert not found[short].facts.saw_stop
    assert heard.steps[short] == [1.0, 2.0]
    assert 3 <= found[long].result < 10**6
    assert found[long].facts.saw_stop
    assert heard.steps[long] == [float(n) for n in range(1, len(heard.steps[long]) + 1)]


def test_a_request_that_comes_late_reaches_a_trial_that_reports_nothing_new(cluster):
    def busy(key, reports):
        time.sleep(1.0)
        return True

    with RayPool(reporting.wait_for_stop) as pool:
        pool.listen(busy)
        pool.submit(None)
        assert end_of(pool).result == "stopped"


def report_until_killed(folder, trial):
    """Report five steps; the first run then waits to be killed."""
    first = not (folder / "began").exists()
    (folder / "began").write_text(str(parent_of_worker()))
    for step in range(1, 9):
        trial.report(step, float(step))
        while first and step == 5:
            time.sleep(0.02)
    return trial.resumed_from


def test_reports_of_a_trial_that_is_run_again_are_neither_lost_nor_doubled(cluster, tmp_path):
    heard = Heard()
    with RayPool(report_until_killed) as pool:
        pool.listen(heard)
        key = pool.submit(tmp_path)
        while len(heard.steps.get(key, [])) < 5:
            assert pool.results(timeout=0.05) == []
        os.kill(int((tmp_path / "began").read_text()), signal.SIGKILL)
        outcome = end_of(pool)
    assert heard.steps == {key: [float(n) for n in range(1, 9)]}
    assert (outcome.status, outcome.result) == (Status.DONE, 5.0)
    assert outcome.facts.repeated_reports == 5


def kill_the_ray_worker(job):
    with (job / "began").open("a") as stream:
        stream.write("x")
    os.kill(parent_of_worker(), signal.SIGKILL)
    time.sleep(60)


def test_a_trial_that_takes_its_machine_down_is_given_up(cluster, tmp_path):
    with RayPool(kill_the_ray_worker) as pool:
        (outcome,) = outcomes(pool, [tmp_path])
    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith(f"lost {MOST_RERUNS + 1} times with its Ray worker")
    assert len((tmp_path / "began").read_text()) == MOST_RERUNS + 1


def test_closing_ends_what_runs(cluster, tmp_path):
    with RayPool(note_and_wait) as pool:
        pool.submit((tmp_path, "long", True))
        worker = began(tmp_path, "long")[0]
        assert pool.results(timeout=0.01) == []
    end = time.monotonic() + 60
    while time.monotonic() < end and os.path.exists(f"/proc/{worker}"):
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}")
    assert cluster.is_initialized()
