"""Playing many runs, in this process or in several."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path

from foretune.errors import ForetuneError, MethodError
from foretune.experience import Experience
from foretune.plugins import ONE_NUMERIC_THREAD, Progress
from foretune_lab.bench.parts import Parts
from foretune_lab.bench.plan import Group
from foretune_lab.bench.results import ReplaySettings
from foretune_lab.bench.run import play


def play_all(
    experience: Experience,
    groups: Sequence[Group],
    settings: ReplaySettings,
    parts: Parts,
    jobs: int,
    progress: Progress,
) -> None:
    """Play all runs, here or in `jobs` processes, and keep each when it ends."""
    progress.start("replaying", sum(len(group.runs) for group in groups))
    try:
        if jobs == 1:
            for group in groups:
                for run in play(experience, group, settings):
                    parts.add(run, settings)
                    progress.step(note=f"{run.method} on {run.task}")
        elif groups:
            experience.save(parts.experience)
            _play_in_processes(groups, settings, parts, jobs, progress)
    finally:
        progress.stop()


def _play_in_processes(
    groups: Sequence[Group], settings: ReplaySettings, parts: Parts, jobs: int, progress: Progress
) -> None:
    """Play runs in spawned workers. The number of runs in the folder is the progress."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with _environment(ONE_NUMERIC_THREAD):
        executor = ProcessPoolExecutor(
            min(jobs, len(groups)), mp_context=context, initializer=_belong_to_the_parent
        )
        try:
            waiting = {executor.submit(_play_group, group, settings, parts) for group in groups}
            _follow(waiting, parts, progress)
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            # Runs are written in one step, so a worker may be ended at any moment.
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        executor.shutdown()


def _follow(waiting: set[Future[None]], parts: Parts, progress: Progress) -> None:
    seen = parts.count()
    while waiting:
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            _check_ended_well(future)
        now = parts.count()
        progress.step(now - seen)
        seen = now


def _check_ended_well(future: Future[None]) -> None:
    try:
        future.result()
    except BrokenProcessPool as error:
        raise ForetuneError(
            "the processes of a replay must live until it ends, but one did not, perhaps because "
            "memory ran out: the same command goes on, with fewer --jobs if it was that; a script "
            'of your own must guard its start with  if __name__ == "__main__"',
            rule="process-lost",
            field="jobs",
        ) from error


def _play_group(group: Group, settings: ReplaySettings, parts: Parts) -> None:
    """Play a group in a worker; Foretune's errors leave the process as one type."""
    try:
        for run in play(_open_experience(parts.experience), group, settings):
            parts.add(run, settings)
    except ForetuneError as error:
        raise MethodError(
            f"replaying '{group.method}' failed: {error}",
            rule="method-failed",
            field="method",
            value=group.method,
        ) from None


@lru_cache(maxsize=1)
def _open_experience(path: Path) -> Experience:
    return Experience.open(path)


def _belong_to_the_parent() -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and end when it ends for any reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        # Runs are written in one step, so the end may come at any moment.
        os._exit(1)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables that processes started in the meantime inherit."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
