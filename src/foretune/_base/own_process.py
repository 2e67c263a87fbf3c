"""Whether a process runs Foretune's own program, and so may load libraries in part.

In the process of a user, a library must be as its authors made it.
"""

import gc

GARBAGE_AFTER = 50_000
"""Objects made before Python looks for cycles of garbage. A command makes most of its objects while
it loads libraries, and with the usual 700 that takes a tenth longer."""


class _OwnProcess:
    is_claimed = False


def claim_process() -> None:
    """Say that this process runs nothing but Foretune's own program."""
    _OwnProcess.is_claimed = True
    gc.set_threshold(GARBAGE_AFTER, *gc.get_threshold()[1:])


def is_own_process() -> bool:
    """Return whether this process runs nothing but Foretune's own program."""
    return _OwnProcess.is_claimed
