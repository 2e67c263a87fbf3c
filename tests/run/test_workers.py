"""Functions that attack their worker cost their own trial at most."""

import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from foretune.experience import Status
from foretune.run.channel import KEY_BYTES, ForeignMessageError, ParentEnd, WorkerEnd, frame
from foretune.run.executor import Limits
from foretune.run.limit_watch import UNFINISHED_ANSWER, Patience
from foretune.run.outputs import HEAD_BYTES, TAIL_BYTES, ShortenedOutput
from foretune.run.pool import CHANNEL_CLOSED, FOREIGN_MESSAGE, NO_LIMITS, ProcessPool
from foretune.run.ray_pool import _pool, evaluate
from foretune.run.report_channel import ReportInbox
from foretune.run.worker import CHANNEL_LOST
from foretune.run.worker_process import WorkerSetup
from foretune.run.worker_start import start_worker
from tests.refusals import warns
from tests.run.attacks import attack
from tests.run.test_pool import gone, outcomes, written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="attacks look into /proc")

WITHIN = Limits(wall_seconds=60.0)
FORKS = ("forked_child_returns", "forked_child_raises", "thread_forks", "fork_unseen_by_python")


@pytest.fixture(scope="module")
def shared():
    """A pool of two workers, which are replaced if a trial attacks them."""
    with ProcessPool(attack, workers=2, limits=WITHIN) as pool:
        yield pool


@pytest.fixture(scope="module")
def single():
    """The same with one worker, where the next trial follows in the same process."""
    with ProcessPool(attack, limits=WITHIN) as pool:
        yield pool


@pytest.fixture(scope="module")
def limited():
    """The same with tight limits."""
    with ProcessPool(attack, limits=Limits(wall_seconds=5.0, cpu_seconds=1.5)) as pool:
        yield pool


@pytest.mark.parametrize("what", [*FORKS, "forked_child_answers_late"])
def test_a_forked_child_that_comes_back_answers_nothing(what, shared):
    jobs = [job for n in range(4) for job in ((what, n), ("give", 10 + n))]
    found = outcomes(shared, jobs)
    assert [(o.status, o.result) for o in found] == [(Status.DONE, job[1]) for job in jobs]


@pytest.mark.parametrize("text", [b"x", b"x" * 1000, pickle.dumps(("child", 0.0, None))])
def test_text_of_a_trial_in_the_channel_is_no_answer(text, single):
    found = outcomes(single, [("give", 1), ("write_into_sockets", text), ("give", 2)])
    assert [o.status for o in found] == [Status.DONE, Status.FAILED, Status.DONE]
    assert found[1].reason == FOREIGN_MESSAGE
    assert found[2].result == 2


def test_a_forged_answer_is_refused_before_it_is_unpickled(tmp_path, single):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    message = pickle.dumps((pickle.dumps(5), 0.0, None, Bomb()))
    forged, later = outcomes(single, [("forge_an_answer", message), ("give", 2)])
    assert (forged.status, forged.reason) == (Status.FAILED, FOREIGN_MESSAGE)
    assert later.result == 2
    assert not (tmp_path / "exploded").exists()


def test_a_trial_that_writes_and_hangs_ends_at_once_and_holds_up_nobody(shared):
    found = outcomes(shared, [("write_and_hang", b"x" * 1000), *[("give", n) for n in range(5)]])
    assert found[0].reason == FOREIGN_MESSAGE
    assert [o.result for o in found[1:]] == list(range(5))


def test_an_answer_that_never_ends_costs_its_trial_and_holds_up_nobody():
    with ProcessPool(attack, workers=2, limits=WITHIN, patience=Patience(message=0.5)) as pool:
        outcomes(pool, [("give", 0)] * 2)
        hanging = pool.submit("begin_an_answer")
        others = {pool.submit(("give", n)) for n in range(5)}
        order = []
        while batch := pool.results():
            order += batch
    assert {outcome.key for outcome in order[:5]} == others
    assert (order[5].key, order[5].reason) == (hanging, UNFINISHED_ANSWER)


def test_questions_without_a_trial_cost_no_trial(single):
    [given] = outcomes(single, [("write_later", b"x" * 100)])
    assert given.result == "given"
    time.sleep(1.0)
    with warns("idle-message"):
        single.submit(("give", 5))
    [outcome] = single.results()
    assert outcome.result == 5


@pytest.mark.parametrize(
    ("first", "last", "reason"), [(3, 1000, ""), (3, 20_000, CHANNEL_CLOSED), (0, 3, "")]
)
def test_closing_descriptors_costs_at_most_the_trial(first, last, reason, single):
    closed, later = outcomes(single, [("close_descriptors", first, last), ("give", 2)])
    assert closed.reason == reason
    assert later.result == 2


def test_a_parent_does_not_wait_for_a_worker_that_does_not_read():
    with ProcessPool(attack, limits=Limits(wall_seconds=2.0)) as pool:
        [worker] = outcomes(pool, ["pid"])
        os.kill(worker.result, signal.SIGSTOP)
        pool.submit(("give", bytes(20 * 2**20)))  # returns, though nobody reads
        [outcome] = pool.results()
        [later] = outcomes(pool, [("give", 2)])
    assert outcome.status is Status.TIMEOUT
    assert later.result == 2


def test_large_jobs_and_results_travel_whole(single):
    sent = os.urandom(5 * 2**20)
    assert outcomes(single, [("give", sent)])[0].result == sent


# Output


@pytest.mark.parametrize("what", ["print_bytes", "write_bytes", "command_prints"])
def test_a_trial_that_prints_without_end_is_cut(what, capfd):
    size = 30 * 2**20
    with ProcessPool(attack, limits=WITHIN) as pool:
        loud, quiet = outcomes(pool, [(what, size), ("say", "only this")])
    assert (loud.status, quiet.status) == (Status.DONE, Status.DONE)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert len(printed.err) < HEAD_BYTES + TAIL_BYTES + 1000
    assert "more bytes that are not shown" in printed.err
    assert printed.err.endswith("only this\n")


def test_output_is_whole_up_to_the_limit():
    output = ShortenedOutput()
    assert output.take(1, b"a" * HEAD_BYTES) == b"a" * HEAD_BYTES
    assert not output.is_cut
    assert output.take(2, b"b") == b"b"
    assert output.close() == b""


def test_long_output_is_cut_to_its_end_and_the_rest_is_counted():
    output = ShortenedOutput()
    text = b"a" * HEAD_BYTES + b"b" * 1_234 + b"c" * TAIL_BYTES
    shown = b"".join(output.take(1, text[n : n + 7_000]) for n in range(0, len(text), 7_000))
    assert shown == b"a" * HEAD_BYTES
    closing = output.take(2, b"next")
    assert b"1,234 more bytes" in closing
    assert closing.endswith(b"c" * TAIL_BYTES + b"next")


def test_nothing_is_hidden_that_fits_into_beginning_and_end():
    output = ShortenedOutput()
    shown = output.take(1, b"a" * (HEAD_BYTES + TAIL_BYTES)) + output.close()
    assert shown == b"a" * (HEAD_BYTES + TAIL_BYTES)


# Processes that trials start


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("return", Status.DONE),
        ("kill", Status.FAILED),
        ("kill the group", Status.FAILED),
        ("exit", Status.FAILED),
        ("hang", Status.TIMEOUT),
        ("burn", Status.TIMEOUT),
    ],
)
def test_daemons_end_with_their_trial(ending, status, tmp_path, limited):
    file = tmp_path / "daemon"
    [outcome] = outcomes(limited, [("start_daemon", file, ending)])
    assert outcome.status is status
    assert gone(int(file.read_text()), within=10.0)
    assert outcomes(limited, [("give", 2)])[0].result == 2


def test_daemons_end_when_the_parent_is_killed(tmp_path):
    program = f"""
        from foretune.run.pool import ProcessPool
        from tests.run.attacks import attack

        with ProcessPool(attack) as pool:
            pool.submit(("start_daemon", {str(tmp_path / "daemon")!r}, "hang"))
            pool.results()
    """
    path, environment = written(tmp_path, program)
    with subprocess.Popen([sys.executable, str(path)], env=environment) as process:
        file = tmp_path / "daemon"
        while not file.exists() or not file.read_text():
            time.sleep(0.02)
        process.kill()
    assert gone(int(file.read_text()), within=10.0)


def test_a_command_that_a_trial_leaves_behind_ends_with_it(tmp_path, single):
    [outcome] = outcomes(single, [("leave_command", tmp_path / "command")])
    assert gone(outcome.result, within=10.0)


def test_a_pool_of_processes_serves_several_trials(single):
    found = outcomes(single, [("keep_a_pool", -n) for n in range(5)])
    assert [(o.result, o.reason) for o in found] == [(n, "") for n in range(5)]


# Results


def test_a_result_over_its_limit_is_refused_and_told_of():
    with ProcessPool(attack, limits=Limits(result_bytes=2**20)) as pool:
        found = outcomes(pool, ["pid", ("large", 2**20 + 1), ("large", 2**19), "pid"])
    assert [o.status for o in found] == [Status.DONE, Status.FAILED, Status.DONE, Status.DONE]
    assert "at most 1 MB" in found[1].reason
    assert found[0].result == found[3].result  # the worker is kept


def test_an_error_without_words_costs_its_trial_and_no_worker(single):
    found = outcomes(single, ["pid", "raise_silently", "pid"])
    assert found[1].reason == "SilentError, whose message cannot be shown"
    assert found[0].result == found[2].result


def test_a_ray_worker_gives_no_trial_the_answer_of_one_that_was_given_up():
    function = pickle.dumps(attack)
    _pool(function, NO_LIMITS).submit(("give", "old"))
    outcome = evaluate(function, NO_LIMITS, ("give", "new"))
    assert pickle.loads(outcome.result) == "new"
    _pool.cache_clear()


# The channel


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield ParentEnd(ours, 1000), WorkerEnd(theirs.fileno())
    ours.close()
    theirs.close()


KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES


def test_messages_arrive_whole_and_in_order(ends):
    parent, worker = ends
    for text in (b"", b"a", b"b" * 1000):
        worker.send(text, KEY)
    assert [parent.read(KEY) for _ in range(4)] == [b"", b"a", b"b" * 1000, None]
    parent.post(b"question")
    assert worker.receive() == b"question"


def test_an_answer_to_another_job_is_refused(ends):
    parent, worker = ends
    worker.send(b"answer", OTHER)
    with pytest.raises(ForeignMessageError):
        parent.read(KEY)


def test_a_part_of_an_answer_is_kept_until_the_rest_comes(ends):
    parent, worker = ends
    whole = frame(b"answer", KEY) + b"answer"
    for byte in whole[:-1]:
        os.write(worker._descriptor, bytes([byte]))
        assert parent.read(KEY) is None
    os.write(worker._descriptor, whole[-1:])
    assert parent.read(KEY) == b"answer"


def test_an_answer_that_is_too_long_is_refused_from_its_header(ends):
    parent, worker = ends
    os.write(worker._descriptor, frame(b"x" * 1001, KEY))
    with pytest.raises(ForeignMessageError):
        parent.read(KEY)


# A parent that is killed


class Prepared:
    """A function that a worker has to prepare."""

    def prepare(self):
        """Do nothing."""

    def __call__(self, job):
        return job


@pytest.mark.parametrize("posts", [0, 1, 2])
def test_a_worker_whose_parent_is_gone_ends_without_a_traceback(posts):
    """Whether the parent was killed before it sent anything, in between, or before the answer."""
    ours, theirs = socket.socketpair()
    parent, setup = ParentEnd(ours, None), WorkerSetup(Prepared())
    for message in (KEY + pickle.dumps(setup.preparation), setup.function)[:posts]:
        parent.post(message)
    parent.close()
    inbox = ReportInbox()
    serve = f"serve({theirs.fileno()}, {inbox.descriptors}, mmap.mmap(-1, 8), None, None)"
    ended = subprocess.run(
        [sys.executable, "-c", f"import mmap; from foretune.run.worker import serve; {serve}"],
        pass_fds=[theirs.fileno(), *inbox.descriptors],
        capture_output=True,
        check=False,
    )
    theirs.close()
    inbox.hand_over()
    inbox.close()
    assert (ended.returncode, ended.stderr) == (CHANNEL_LOST if posts == 2 else 0, b"")


# Growth


def held():
    """Open descriptors, threads, and children of this process."""
    gc.collect()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)


def test_trials_and_replaced_workers_leave_nothing_behind():
    start_worker.load([])  # the server is there before and after
    before = held()
    with ProcessPool(attack, workers=2, limits=WITHIN) as pool:
        outcomes(pool, [("give", 1)] * 2)
        during = held()
        outcomes(pool, [("give", n) for n in range(50)])
        outcomes(pool, [job for n in range(4) for job in ("die", ("give", n))])
        outcomes(pool, [("give", 1)] * 2)
        assert held() == during
    end = time.monotonic() + 5
    while held()[1] != before[1] and time.monotonic() < end:
        time.sleep(0.05)  # for the thread that looks at workers
    descriptors, threads, children = held()
    assert (descriptors, threads) == before[:2]
    assert children <= before[2]
