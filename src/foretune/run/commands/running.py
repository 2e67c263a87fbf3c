"""Running a program: its output is read as it comes, and it is asked to end when it is to stop."""

import json
import os
import selectors
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from foretune.errors import ForetuneWarning
from foretune.run.call import LONGEST_REASON
from foretune.run.commands.filling import CommandError, CommandStart
from foretune.run.commands.reporting import STEP, ReportReader, strip_step
from foretune.run.heartbeat import start_time
from foretune.run.memory import resident_bytes, size_text
from foretune.run.process_family import cpu_seconds_of, family, shell_family
from foretune.run.running_trial import RunningTrial

__all__ = ["CommandLimits", "CommandRun", "json_result"]

MOST_OUTPUT_BYTES = 2**20
"""How much of the end of the standard output is kept, for the result."""
MOST_ERROR_BYTES = 2**16
"""How much of the end of the standard error is kept, for the reason of a failure."""
CHUNK_BYTES = 2**16
LOOK_SECONDS = 0.1
"""How often the processes are looked at, and their memory and CPU time measured."""
DRAIN_SECONDS = 1.0
"""How long output is read after the program has ended, if something it has started goes on."""
GRACE_SECONDS = 30.0
"""How long a command may take to end when it is asked to stop."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """The limits of a command."""

    memory_bytes: int | None = None
    """How much its processes may hold together."""
    grace_seconds: float = GRACE_SECONDS
    """How long it may take to end after SIGTERM. Then all its processes are killed."""


NO_LIMITS = CommandLimits()


class Tail:
    """The end of a stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self.size = 0
        """The number of bytes that came."""

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        self.size += len(data)
        self._kept += data
        if len(self._kept) > 2 * self._most:
            del self._kept[: -self._most]

    def text(self) -> str:
        """Return what is kept, whole lines of it."""
        kept = bytes(self._kept[-self._most :])
        if self.size > len(kept):
            kept = kept.partition(b"\n")[2]
        return kept.decode("utf-8", errors="replace")

    def was_cut(self) -> str:
        """Return a remark on what was not kept; it is empty if everything was."""
        if self.size <= self._most:
            return ""
        return f" (only the last {self._most // 1024} KB of {size_text(self.size)} were kept)"


class CommandRun:
    """One run of a program, with all processes that it starts."""

    def __init__(
        self,
        start: CommandStart,
        variables: Mapping[str, str],
        limits: CommandLimits,
        trial: RunningTrial,
    ) -> None:
        self.output, self._errors = Tail(MOST_OUTPUT_BYTES), Tail(MOST_ERROR_BYTES)
        self.is_stopped = False
        """True if it was asked to stop."""
        self._limits, self._trial = limits, trial
        self._reader = ReportReader(self._report)
        self._process = _start(start, variables)
        self._asked: dict[int, str] = {}
        """The processes that were asked to stop, with the times at which they were started."""
        self._kill_at = float("inf")
        self._ended: float | None = None
        self._next_look = 0.0
        self._cpu_seconds = 0.0

    def finish(self) -> None:
        """Run the program to its end.

        CommandError if it fails, MemoryError over its limit, ReportError after a bad report.
        """
        with self._process:
            try:
                self._read()
            except BaseException:
                self._kill()
                raise
        code = self._process.returncode
        if code and not self.is_stopped:
            raise CommandError(_failure(code, self._errors), rule="exit-code", value=code)

    def _read(self) -> None:
        """Read both streams until the program has ended."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ, self._take_output)
            selector.register(self._process.stderr, selectors.EVENT_READ, self._errors.add)
            while selector.get_map() or self._is_alive():
                self._read_once(selector)
                self._look()
                if self._ended is not None and time.monotonic() - self._ended > DRAIN_SECONDS:
                    return

    def _read_once(self, selector: selectors.BaseSelector) -> None:
        """Read what there is, and wait a moment if there is nothing."""
        if not selector.get_map():
            if self._process.poll() is not None:
                time.sleep(LOOK_SECONDS)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK_SECONDS)
            return
        for key, _ in selector.select(LOOK_SECONDS):
            stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
            data = os.read(stream.fileno(), CHUNK_BYTES)
            take: Callable[[bytes], None] = key.data
            take(data)
            if not data:
                selector.unregister(stream)

    def _take_output(self, data: bytes) -> None:
        self.output.add(data)
        self._reader.add(data)

    def _report(self, step: Any, values: Mapping[str, Any]) -> None:
        self._trial.report_values(step, values, seconds=self._cpu_seconds)

    def _look(self) -> None:
        """See whether the program has ended, is over its limit, or is to stop."""
        if not self._is_alive():
            self._ended = self._ended or time.monotonic()
            return
        if not self.is_stopped and self._trial.should_stop():
            self._ask_to_stop()
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        processes = self._processes()
        self._cpu_seconds = max(self._cpu_seconds, cpu_seconds_of(processes))
        _check_memory(processes, self._limits.memory_bytes)
        if now > self._kill_at:
            self._kill_stopped()

    def _is_alive(self) -> bool:
        """Return True until the program, and what was asked to stop with it, have ended."""
        return bool(self._roots())

    def _roots(self) -> list[int]:
        """Return the program, and what was asked to stop with it, unless they have ended."""
        own = [self._process.pid] if self._process.poll() is None else []
        return own + [pid for pid, at in self._asked.items() if start_time(pid) == at]

    def _processes(self) -> list[int]:
        """Return all processes of the program, each once."""
        return list(dict.fromkeys(each for root in self._roots() for each in family(root)))

    def _kill(self) -> None:
        for pid in self._processes():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _ask_to_stop(self) -> None:
        """Send SIGTERM to the program; if it is a shell, also to the programs that it runs."""
        self.is_stopped = True
        self._kill_at = time.monotonic() + self._limits.grace_seconds
        # All of them are noted before the first signal: a shell that ends leaves its programs.
        times = {pid: start_time(pid) for pid in shell_family(self._process.pid)}
        self._asked = {pid: at for pid, at in times.items() if at is not None}
        for pid in self._asked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    def _kill_stopped(self) -> None:
        """Kill a program that did not end when it was asked to."""
        self._kill()
        self._kill_at = float("inf")
        warnings.warn(
            ForetuneWarning(
                f"a command must end within {self._limits.grace_seconds:g} s when it gets SIGTERM, "
                "but it did not, and was killed: let it end, or give it more time with --grace",
                rule="stop-ignored",
                value=self._limits.grace_seconds,
            ),
            stacklevel=2,
        )


def json_result(output: Tail) -> Any:
    """Return the last line of the output that is a JSON number or object."""
    for line in reversed(output.text().splitlines()):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and STEP in found:
            return strip_step(found)
        if isinstance(found, dict | int | float) and not isinstance(found, bool):
            return found
    raise CommandError(
        f"it printed no line that is a JSON number or object{output.was_cut()}", rule="no-result"
    )


def _start(start: CommandStart, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            start.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **start.variables, **variables},
        )
    except OSError as error:
        program = start.arguments[0]
        reason = f"'{program}' cannot be started: {error.strerror or error}"
        raise CommandError(reason[:LONGEST_REASON], rule="not-started", value=program) from error


def _check_memory(processes: list[int], memory_bytes: int | None) -> None:
    """Refuse processes that hold too much together."""
    if memory_bytes is None:
        return
    held = sum(resident_bytes(pid) or 0 for pid in processes)
    if held > memory_bytes:
        raise MemoryError(f"the command is over its limit of {size_text(memory_bytes)}")


def _failure(code: int, errors: Tail) -> str:
    lines = [line.strip() for line in errors.text().splitlines() if line.strip()]
    ended = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
    ended += errors.was_cut()
    return f"{ended}: {lines[-1]}"[:LONGEST_REASON] if lines else ended
