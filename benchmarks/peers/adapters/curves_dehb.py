"""DEHB: differential evolution with Hyperband, with its defaults, on a flat space.

A configuration that DEHB promotes unchanged continues where it stopped. One that evolution has
changed is a new trial.
"""

import tempfile

from benchmarks.peers.adapters.configspace import row_of, space_of
from benchmarks.peers.curve_play import Work
from benchmarks.peers.curve_problem import ETA, CurveProblem
from dehb import DEHB


class DehbTuner:
    """DEHB's ask and tell."""

    def __init__(self, setting: CurveProblem, seed: int) -> None:
        self._problem = setting.problem
        self._folder = tempfile.TemporaryDirectory()
        first, last = setting.ticks
        space = space_of(setting.problem, seed, conditional=False)
        self._dehb = DEHB(
            cs=space,
            f=None,
            dimensions=len(setting.problem.parameters),
            min_fidelity=first,
            max_fidelity=last,
            eta=ETA,
            n_workers=1,
            seed=seed % 2**31,
            output_path=self._folder.name,
            save_freq="end",
            log_level="ERROR",
        )
        self._keys: dict[bytes, int] = {}
        self._job: dict[str, object] = {}

    def ask(self) -> Work:
        """Return a configuration and the step up to which DEHB wants it to run."""
        self._job = self._dehb.ask()
        row = row_of(self._problem, self._job["config"])
        key = self._keys.setdefault(row.tobytes(), len(self._keys))
        return Work(key, row, float(str(self._job["fidelity"])))

    def report(self, work: Work, tick: int, loss: float) -> bool:
        """Go on, because DEHB sees the last step only."""
        del work, tick, loss
        return True

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        """Tell the loss at the fidelity, and what it has cost."""
        del work, complete
        self._dehb.tell(self._job, {"fitness": loss, "cost": float(tick)})


PEERS = {"dehb": DehbTuner}
