"""Being asked to stop: Ctrl-C, and the signals by which schedulers and terminals end a process.

An exception raised by a signal's handler may be lost: Python drops what falls into a callback of a
weak reference or into `__del__`, says so on standard error, and goes on, and a scheduler asks only
once. So an exception that was dropped is raised again a moment later. The request is kept as well,
for loops to look at: libraries may drop what is raised in them without a word.
"""

import atexit
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


class _Request:
    """Plain attributes: a handler must not wait for a lock that the code below it holds."""

    made = False
    is_lost = False
    """Whether Python has dropped its exception, and no other one was raised since."""
    others_dropped: Callable[["UnraisableHookArgs"], object] = sys.__unraisablehook__
    """What is told of other exceptions that Python drops."""


def listen() -> None:
    """Let every signal that asks to stop raise KeyboardInterrupt, and be kept until it is heeded.

    What is ignored, as under nohup, stays so. Processes that are started from here do not inherit
    the handler.
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


def _take_in(number: int, frame: FrameType | None) -> None:
    _Request.made, _Request.is_lost = True, False
    signal.default_int_handler(number, frame)


def _handle_unraisable(what: "UnraisableHookArgs") -> None:
    """Hear of an exception that Python has dropped."""
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
    """Let no exception be raised again, whose alarm is set."""
    _Request.is_lost = False
    if signal.getsignal(signal.SIGALRM) is _raise_again:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_again(number: int, frame: FrameType | None) -> None:
    """Unless a loop has looked meanwhile: what it then lets go is not to be stopped in turn."""
    del number, frame
    if _Request.is_lost:
        check()


def check() -> None:
    """Raise KeyboardInterrupt if a request to stop has come and was not heeded."""
    if _Request.made:
        _Request.is_lost = False
        raise KeyboardInterrupt


@contextmanager
def absorb_requests() -> Iterator[None]:
    """What ends with this has heeded all requests until then: later work is not stopped by them."""
    try:
        yield
        check()
    finally:
        _Request.made = False
