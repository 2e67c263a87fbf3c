"""The function of the kills of `foretune portfolio build`. It is small: workers import it."""

import os
import time

LOG = "pairs.log"
CENTRES = {"a": 0.2, "b": 0.25, "c": 0.5, "d": 0.75, "e": 0.8}


def error(config: dict, task: str) -> float:
    """Note in a file that this pair was evaluated, and return its error."""
    time.sleep(0.02)
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{task} {config['x']!r}\n".encode())
    os.close(descriptor)
    return measure(task, config["x"])


def measure(task: str, x: float) -> float:
    """Return the error of a pair."""
    return 0.1 + abs(x - CENTRES[task])
