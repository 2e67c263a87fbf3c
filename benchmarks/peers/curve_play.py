"""Play one peer on recorded learning curves; runs in the peer's environment with NumPy alone.

    python -m benchmarks.peers.curve_play FOLDER MODULE PEER

FOLDER holds `plan.json` and `problems/*.npz`, and gets `runs/PEER/TASK-SEED.npz` for each run. A
run that is there is not played again, and each is written in one step, so the same command goes on.
"""

import importlib
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Protocol

import numpy as np
from benchmarks.peers.curve_problem import CurveProblem
from benchmarks.peers.objective import Floats


@dataclass(frozen=True)
class Work:
    """A trial that a peer begins or continues."""

    key: int
    """The identity of the trial. A known key means that the trial goes on after its last step."""
    row: Floats
    """Its configuration."""
    until: float = math.inf
    """The step at which the trial ends in any case."""


class CurvePeer(Protocol):
    """A peer as its adapter presents it. `PEERS` maps names to makers (problem, seed)."""

    def ask(self) -> Work:
        """Return the next trial to run."""

    def report(self, work: Work, tick: int, loss: float) -> bool:
        """Tell the loss at a step, and return whether the trial goes on."""

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        """Tell how a trial ended or was interrupted."""


class CurvePlayer:
    """One run of a peer: one worker, which pays for each step that a trial takes.

    A diverged loss is told as the worst finite loss of the run so far, or of any first step if that
    is worse, because most peers refuse NaN.
    """

    def __init__(self, setting: CurveProblem, peer: CurvePeer) -> None:
        self._setting, self._peer = setting, peer
        self._reached: dict[int, int] = {}
        """{key of a trial: its last point}"""
        first = setting.losses[setting.offsets[:-1].astype(int)]
        self._worst = float(first[np.isfinite(first)].max(initial=-math.inf))
        self.spent: list[float] = []
        self.values: list[float] = []
        self.best: list[float] = []
        self.seconds: list[float] = []
        self._thought = 0.0

    def play(self, budget: float) -> dict[str, Floats]:
        """Spend the budget, in complete runs; return one entry for each decision."""
        paid, best = 0.0, math.inf
        while paid < budget * self._setting.complete_cost:
            self._thought = 0.0
            work = self._measure(self._peer.ask)
            curve = self._setting.curve(self._setting.problem.nearest(work.row))
            before = self._reached.get(work.key, -1)
            after = self._train(work, before)
            seen = curve.losses[before + 1 : after + 1]
            best = min([best, *seen[np.isfinite(seen)].tolist()])
            paid += float(curve.clock[after] - (curve.clock[before] if before >= 0 else 0.0))
            self._reached[work.key] = after
            self.spent.append(paid / self._setting.complete_cost)
            self.values.append(float(curve.losses[after]))
            self.best.append(best)
            self.seconds.append(self._thought)
        return {
            "cost": np.array(self.spent),
            "value": np.array(self.values),
            "best": np.array(self.best),
            "suggest_seconds": np.array(self.seconds),
        }

    def _train(self, work: Work, before: int) -> int:
        """Report step by step, and return the last point."""
        curve = self._setting.curve(self._setting.problem.nearest(work.row))
        last = len(curve.ticks) - 1
        point, loss = before, math.nan
        while point < last:
            point += 1
            tick, loss = int(curve.ticks[point]), self._finite(float(curve.losses[point]))
            goes_on = self._measure(lambda: self._peer.report(work, tick, loss))  # noqa: B023
            if not goes_on or tick >= work.until:
                break
        tick = int(curve.ticks[max(point, 0)])
        self._measure(lambda: self._peer.end(work, tick, loss, point == last))
        return point

    def _finite(self, loss: float) -> float:
        if math.isfinite(loss):
            self._worst = max(self._worst, loss)
            return loss
        return self._worst

    def _measure(self, act):  # type: ignore[no-untyped-def]
        """Call a function of the peer, and add its processor time to what the peer has thought."""
        start = process_time()
        result = act()
        self._thought += process_time() - start
        return result


def main() -> None:
    """Play all runs of the plan that are missing."""
    folder, module, peer = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    make = importlib.import_module(module).PEERS[peer]
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    (folder / "runs" / peer).mkdir(parents=True, exist_ok=True)
    for task, number, seed in plan["runs"]:
        out = folder / "runs" / peer / f"{task}-{number}.npz"
        if out.exists():
            continue
        setting = CurveProblem.load(folder / "problems" / f"{task}.npz")
        played = CurvePlayer(setting, make(setting, seed)).play(plan["budget"])
        unfinished = out.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            np.savez(file, **played)  # type: ignore[arg-type]
        unfinished.rename(out)
        seconds = played["suggest_seconds"]
        said = f"{len(seconds)} decisions, {seconds.sum():.0f} CPU s"
        print(f"{peer} on {task}, seed {number}: {said}", flush=True)


if __name__ == "__main__":
    main()
