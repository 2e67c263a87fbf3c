"""Requests to stop: Ctrl-C, and the signals by which schedulers and terminals end a process.

A signal's handler raises an exception, and that may be lost: Python drops one that is raised in a
callback of a weak reference or in `__del__`, says so on standard error, and goes on. A scheduler
asks only once. An exception that was dropped is therefore raised again a moment later. The request
is kept as well, and loops look at it, because libraries may drop the exception without a word.
"""

import atexit
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
AGAIN_SECONDS = 0.05
"""After which a dropped exception is raised again: what has dropped it is over by then."""


class StoppedBeforeAnyTrial(KeyboardInterrupt):
    """The user pressed Ctrl-C before a trial had ended."""


class _Request:
    """Plain attributes: a handler must not wait for a lock that the code below it holds."""

    made = False
    is_lost = False
    """True if Python has dropped its exception, and no other one was raised since."""
    others_dropped: Callable[["UnraisableHookArgs"], object] = sys.__unraisablehook__
    """The function that hears of other exceptions that Python drops."""


def listen() -> None:
    """Let every signal that asks to stop raise KeyboardInterrupt, and remember the request.

    An ignored signal, as under nohup, stays ignored. Processes that are started from here do not
    inherit the handler.
    """
    usual = (signal.SIG_DFL, signal.default_int_handler)
    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in usual:
            signal.signal(number, _take_in)
    # Windows has no timer: there the loops that look must do.
    if hasattr(signal, "setitimer") and sys.unraisablehook is not _handle_unraisable:
        _Request.others_dropped, sys.unraisablehook = sys.unraisablehook, _handle_unraisable
        # Python lets go of all handlers as it ends: an alarm would then end it as the system does.
        atexit.register(_call_off)
    if logging.lastResort is not None:
        logging.lastResort.addFilter(_is_no_request)


def stop_listening() -> None:
    """Let a signal end this process at once and silently, because its work is done."""
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is _take_in:
            signal.signal(number, signal.SIG_DFL)


def _is_no_request(record: logging.LogRecord) -> bool:
    """Return False for a log entry about the exception of a request.

    SQLAlchemy logs an error with a traceback when Ctrl-C interrupts it. That is no error.
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, KeyboardInterrupt)


def _take_in(number: int, frame: FrameType | None) -> None:
    _Request.made, _Request.is_lost = True, False
    signal.default_int_handler(number, frame)


def _handle_unraisable(what: "UnraisableHookArgs") -> None:
    """Take in an exception that Python has dropped."""
    is_asked = issubclass(what.exc_type, KeyboardInterrupt) and not sys.is_finalizing()
    is_ours = _Request.made and is_asked
    if is_ours and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, _raise_again):
        _Request.is_lost = True
        # Not before it is needed: an alarm that was set before this program ends it.
        signal.signal(signal.SIGALRM, _raise_again)
        # A timer of the system, not a thread: this may run in the middle of anything.
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    else:
        _Request.others_dropped(what)


def _call_off() -> None:
    """Cancel the alarm that raises an exception again."""
    _Request.is_lost = False
    if signal.getsignal(signal.SIGALRM) is _raise_again:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_again(number: int, frame: FrameType | None) -> None:
    """Raise the exception again, unless a loop has seen the request meanwhile."""
    del number, frame
    if _Request.is_lost:
        check()


def check() -> None:
    """Raise KeyboardInterrupt if there is a request to stop that nobody has heeded."""
    if _Request.made:
        _Request.is_lost = False
        raise KeyboardInterrupt


@contextmanager
def absorb_requests() -> Iterator[None]:
    """Let a block heed all requests that come until it ends; they do not stop later work."""
    try:
        yield
        check()
    finally:
        _Request.made = False
