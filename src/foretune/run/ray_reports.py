"""Reports of trials on a Ray cluster: a mailbox between the machines and the driver.

The mailbox is an actor on the driver's machine. A trial's machine puts reports into it and learns
whether the trial is to stop. The driver takes them out and answers. A report stays in the mailbox
until the driver has asked for what comes after it, so a call that is lost loses no report.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from foretune.run.reports import Report

__all__ = ["Letter", "Mailbox", "RayLine", "make_mailbox"]

ANSWER_SECONDS = 0.01
"""How long a machine waits for the answer to reports; the trial itself waits at most 20 ms."""


class Letter(NamedTuple):
    """Reports of one job."""

    number: int
    """Later letters have larger numbers."""
    key: int
    reports: Sequence[Report]


class Mailbox:
    """Keeps reports until the driver has them, and its answers. It runs as an actor of Ray."""

    def __init__(self) -> None:
        self._letters: list[Letter] = []
        # Numbers go on upwards if Ray has to start the mailbox again.
        self._last = self._answered = time.time_ns()
        self._stopped: set[int] = set()
        self._is_closed = False
        self._is_new, self._has_answer = asyncio.Event(), asyncio.Event()

    async def put(self, key: int, reports: Sequence[Report]) -> bool:
        """Keep reports, wait a moment for the answer, and return True if the job is to stop."""
        self._last += 1
        number = self._last
        self._letters.append(Letter(number, key, reports))
        self._is_new.set()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while self._answered < number:
                    self._has_answer.clear()
                    await self._has_answer.wait()
        except TimeoutError:
            pass  # the driver is busy
        return await self.is_stopped(key)

    async def is_stopped(self, key: int) -> bool:
        """Return True if a job is to stop."""
        return key in self._stopped

    async def take(self, seen: int, wait: bool) -> list[Letter]:
        """Return the letters after number `seen`. wait: until there is one."""
        self._letters = [letter for letter in self._letters if letter.number > seen]
        while wait and not (self._letters or self._is_closed):
            self._is_new.clear()
            await self._is_new.wait()
        return list(self._letters)

    async def close(self) -> None:
        """Let the call that waits for letters end."""
        self._is_closed = True
        self._is_new.set()

    async def answer(self, number: int, stopped: Sequence[int]) -> None:
        """Answer all letters up to a number. stopped: the jobs that are to stop."""
        self._answered = number
        self._stopped.update(stopped)
        self._has_answer.set()


def make_mailbox(ray: Any) -> Any:
    """Start a mailbox on the machine of the driver."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    # A connection may break for a moment when a machine is lost. Every call may be made twice.
    actor = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Mailbox)
    return actor.options(scheduling_strategy=here).remote()


class RayLine:
    """The line of one trial from its machine to the mailbox. Without a mailbox nobody listens."""

    def __init__(self, mailbox: Any, key: int) -> None:
        self._mailbox, self._key = mailbox, key
        self.own_key: int | None = None
        """The key of the trial in the pool of this machine."""

    def hear(self, own_key: int, reports: Sequence[Report]) -> bool:
        """Pass reports on; those of a job that was given up are dropped."""
        if self.own_key not in (None, own_key):
            return True
        return self._ask(lambda mailbox: mailbox.put.remote(self._key, reports))

    def should_stop(self) -> bool:
        """Return True if the driver wants the trial to stop."""
        return self._ask(lambda mailbox: mailbox.is_stopped.remote(self._key))

    def _ask(self, call: Callable[[Any], Any]) -> bool:
        if self._mailbox is None:
            return False
        import ray

        return bool(ray.get(call(self._mailbox)))
