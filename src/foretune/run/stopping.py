"""Being asked to stop: Ctrl-C, and the signals by which schedulers and terminals end a process.

An exception raised by a signal's handler may be lost: Python drops what falls into a callback of a
weak reference or into `__del__`, and a scheduler asks only once. So the request is kept as well.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class _Request:
    """A plain attribute: a handler must not wait for a lock that the code below it holds."""

    made = False


def listen() -> None:
    """Let every signal that asks to stop raise KeyboardInterrupt, and be kept until it is heeded.

    What is ignored, as under nohup, stays so. Processes that are started from here do not inherit
    the handler.
    """
    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        usual = (signal.SIG_DFL, signal.default_int_handler)
        if number is not None and signal.getsignal(number) in usual:
            signal.signal(number, _take_in)


def _take_in(number: int, frame: FrameType | None) -> None:
    _Request.made = True
    signal.default_int_handler(number, frame)


def check() -> None:
    """Raise KeyboardInterrupt if a request to stop has come and was not heeded."""
    if _Request.made:
        raise KeyboardInterrupt


@contextmanager
def heeded() -> Iterator[None]:
    """What ends with this has heeded all requests until then: later work is not stopped by them."""
    try:
        yield
    finally:
        _Request.made = False
