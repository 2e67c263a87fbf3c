"""Running a program: what it prints is read as it comes, and only its end is kept."""

import json
import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, Any, NamedTuple

from foretune.run.call import LONGEST_REASON
from foretune.run.commands.filling import CommandError, CommandStart
from foretune.run.commands.processes import descendants
from foretune.run.memory import resident_bytes, size_text

__all__ = ["Printed", "json_result", "run"]

MOST_OUTPUT_BYTES = 2**20
"""So much of the end of the standard output is kept, for the result."""
MOST_ERROR_BYTES = 2**16
"""So much of the end of the standard error is kept, for the reason of a failure."""
CHUNK_BYTES = 2**16
LOOK_SECONDS = 0.1
"""How often the process is looked at, and its memory measured."""
DRAIN_SECONDS = 1.0
"""How long output is read after the program has ended, if something it has started goes on."""


class Tail:
    """The end of a stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self.size = 0
        """All the bytes that came."""

    def add(self, data: bytes) -> None:
        """Take in what comes next."""
        self.size += len(data)
        self._kept += data
        if len(self._kept) > 2 * self._most:
            del self._kept[: -self._most]

    def text(self) -> str:
        """What is kept, whole lines of it."""
        kept = bytes(self._kept[-self._most :])
        if self.size > len(kept):
            kept = kept.partition(b"\n")[2]
        return kept.decode("utf-8", errors="replace")

    def was_cut(self) -> str:
        """A remark on what was not kept; empty if everything was."""
        if self.size <= self._most:
            return ""
        return f" (only the last {self._most // 1024} KB of {size_text(self.size)} were kept)"


class Printed(NamedTuple):
    """What a program has printed."""

    output: Tail
    errors: Tail


def run(start: CommandStart, variables: dict[str, str], memory_bytes: int | None) -> Printed:
    """Run a program to its end; raises CommandError if it fails, MemoryError over its limit."""
    printed = Printed(Tail(MOST_OUTPUT_BYTES), Tail(MOST_ERROR_BYTES))
    with _start(start, variables) as process:
        try:
            _read(process, printed, memory_bytes)
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise CommandError(
            _failure(process.returncode, printed.errors), rule="exit-code", value=process.returncode
        )
    return printed


def json_result(output: Tail) -> Any:
    """The last line of the output that is a JSON number or object."""
    for line in reversed(output.text().splitlines()):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict | int | float) and not isinstance(found, bool):
            return found
    raise CommandError(
        f"it printed no line that is a JSON number or object{output.was_cut()}", rule="no-result"
    )


def _start(start: CommandStart, variables: dict[str, str]) -> subprocess.Popen[bytes]:
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


def _read(process: subprocess.Popen[bytes], printed: Printed, memory_bytes: int | None) -> None:
    """Read both streams until the process has ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    next_look, ended = time.monotonic() + LOOK_SECONDS, None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, printed.output)
        selector.register(process.stderr, selectors.EVENT_READ, printed.errors)
        while selector.get_map() or process.poll() is None:
            _read_once(selector, process)
            now = time.monotonic()
            if now < next_look:
                continue
            next_look = now + LOOK_SECONDS
            if process.poll() is None:
                _check_memory(process, memory_bytes)
            elif ended is None:
                ended = now
            elif now - ended > DRAIN_SECONDS:
                return


def _read_once(selector: selectors.BaseSelector, process: subprocess.Popen[bytes]) -> None:
    """Read what there is, waiting for it a moment."""
    if not selector.get_map():
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
    for key, _ in selector.select(LOOK_SECONDS) if selector.get_map() else ():
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
        data = os.read(stream.fileno(), CHUNK_BYTES)
        key.data.add(data)
        if not data:
            selector.unregister(stream)


def _check_memory(process: subprocess.Popen[bytes], memory_bytes: int | None) -> None:
    """Refuse a process that holds too much, together with all that it has started."""
    if memory_bytes is None:
        return
    held = sum(resident_bytes(pid) or 0 for pid in descendants(process.pid))
    if held > memory_bytes:
        raise MemoryError(f"the command is over its limit of {size_text(memory_bytes)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    if process.poll() is None:
        for pid in descendants(process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _failure(code: int, errors: Tail) -> str:
    lines = [line.strip() for line in errors.text().splitlines() if line.strip()]
    ended = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
    ended += errors.was_cut()
    return f"{ended}: {lines[-1]}"[:LONGEST_REASON] if lines else ended
