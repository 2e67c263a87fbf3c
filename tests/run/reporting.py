"""Functions that report, importable by worker processes."""

import os
import signal
import threading
import time


def losses(count, trial):
    """Report `count` losses, or fewer if the trial is to stop."""
    for step in range(1, count + 1):
        trial.report(step, 1.0 / step, size=step)
        if trial.should_stop():
            return step
    return count


def flood(count, trial):
    """Report without ever asking."""
    for step in range(count):
        trial.report(step, float(step))
    return count


def report(points, trial):
    """Report these steps and values."""
    for step, value in points:
        trial.report(step, value)
    return len(points)


def yield_all(points):
    """Yield these, and say so at the end."""
    yield from points


def yield_and_return(points):
    """Yield these, and return something else."""
    yield from points
    return "end"


def step_alone(step, trial):
    """Report no value."""
    trial.report(step)


def die_after_reports(count, trial):
    """Die just after the last report."""
    flood(count, trial)
    os.kill(os.getpid(), signal.SIGKILL)


def report_from_fork(config, trial):
    """Report in a copy of the process; return how that ended."""
    trial.report(1, 1.0)
    child = os.fork()
    if not child:
        try:
            trial.report(2, 2.0)
        except Exception as error:
            os._exit(7 if error.rule == "report-from-fork" else 8)
        os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def wait_for_stop(config, trial):
    """Report once, and ask again and again."""
    trial.report(1, 0.5)
    end = time.monotonic() + 60.0
    while not trial.should_stop() and time.monotonic() < end:
        time.sleep(0.02)
    return "stopped" if trial.should_stop() else "nobody asked"


class LateReports:
    """Report from a thread that outlives its trial, and return what came of the one before."""

    def __init__(self):
        self.rules = []
        self.threads = []

    def __call__(self, config, trial):
        for thread, is_over in self.threads:
            is_over.set()
            thread.join()
        is_over = threading.Event()
        thread = threading.Thread(target=self._late, args=(trial, is_over))
        thread.start()
        self.threads = [(thread, is_over)]
        if config == "last":
            is_over.set()
            thread.join()
        return list(self.rules)

    def _late(self, trial, is_over):
        is_over.wait()
        try:
            trial.report(1, 1.0)
            self.rules.append("accepted")
        except Exception as error:
            self.rules.append(error.rule)


def where(config, trial):
    """Use the folder, and say what the trial knows of itself."""
    (trial.folder / "checkpoint").write_text("x")
    return str(trial.folder), trial.number, trial.resumed_from


def with_seed(config, seed=5):
    """A function of one argument, as before."""
    return config, seed


def with_optional_trial(config, trial=None):
    """A function that can be called without a trial, too."""
    return trial is not None
