"""Which faults in methods the conformance suite finds, one at a time, in a copy of the source.

    python tools/conformance_mutants.py [--suite conformance.py] [--only NAME ...]

--suite: another version of `src/foretune/testing/conformance.py`, to compare the two.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutant:
    """One line that is wrong."""

    name: str
    method: str
    path: str
    right: str
    wrong: str


MUTANTS = (
    Mutant("pending is not to be beaten", "gp", "methods/gp/gaussian_process.py",
           "float(y.min()))", "float(y[real].min()))"),
    Mutant("failed trials reach the model", "gp", "methods/gp/gaussian_process.py",
           "good = seen.successes()", "good = seen"),
    Mutant("equal losses have no unit", "gp", "numerics/transforms.py",
           "1.0 if is_constant else spread * largest", "spread * largest"),
    Mutant("pending trials count as untried", "random", "search/config_choice.py",
           "            if self.pending\n", "            if False\n"),
    Mutant("the seed of an ask is drawn", "random", "search/config_choice.py",
           "seed = derive_seed(self.seed, len(trials.told), len(trials.pending))",
           "seed = int(np.random.default_rng().integers(2**31))"),
    Mutant("a pool is tried again", "random", "search/candidates.py",
           "untried[self._rows.get(key, [])] = False", "untried[[]] = False"),
    Mutant("a forest forgets its seed", "rf", "methods/forest/forest.py",
           "trees=TREES, seed=seed)",
           "trees=TREES, seed=int(np.random.default_rng().integers(9**9)))"),
    Mutant("a portfolio is loaded backwards", "zero-shot", "methods/zero_shot/learn.py",
           "PortfolioPrior(self.kind, configs, self", "PortfolioPrior(self.kind, "
           "configs.take(np.arange(len(configs))[::-1]), self"),
    Mutant("scores are loaded negated", "adaptive-portfolio", "methods/zero_shot/adaptive.py",
           'arrays["scores"].astype(np.float64))', '-arrays["scores"].astype(np.float64))'),
    Mutant("values of the pool stand for others", "factors", "methods/past_data.py",
           "if x is not self.pool:", "if self.pool is None:"),
    Mutant("a seed is not saved", "dre-ri", "methods/ranking/learn.py",
           'meta={"seed": self.seed}', 'meta={"seed": 0}'),
    Mutant("earlier draws are never forgotten", "rgpe", "methods/rgpe/stacked.py",
           "if not np.array_equal(self._x, x[: len(self._x)]):", "if False:"),
)  # fmt: skip


def is_killed(mutant: Mutant, suite: Path) -> tuple[bool, float]:
    """Return whether a test of the suite fails, and the CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        shutil.copy(suite, source / "foretune/testing/conformance.py")
        path = source / "foretune" / mutant.path
        text = path.read_text("utf-8")
        if mutant.right not in text:
            raise SystemExit(f"{mutant.name}: the line is no longer in {mutant.path}")
        text = text.replace(mutant.right, mutant.wrong)
        path.write_text(text if "import numpy" in text else f"import numpy as np\n{text}", "utf-8")
        test = Path(folder) / "test_mutant.py"
        test.write_text(
            "from foretune.search import METHODS\nfrom foretune.testing import MethodConformance\n"
            f"class Test(MethodConformance):\n    method = METHODS[{mutant.method!r}]\n",
            "utf-8",
        )
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(test)]
        before = os.times()
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), *sys.path[1:]])},
            capture_output=True,
            check=False,
        )
        after = os.times()
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    spent = after.children_user + after.children_system
    return done.returncode == 1, spent - before.children_user - before.children_system


def main() -> None:
    """Print one line for each mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = ROOT / "src/foretune/testing/conformance.py"
    parser.add_argument("--suite", type=Path, default=usual)
    parser.add_argument("--only", nargs="*", default=[m.name for m in MUTANTS])
    given = parser.parse_args()
    for mutant in MUTANTS:
        if mutant.name in given.only:
            killed, seconds = is_killed(mutant, given.suite)
            said = "killed" if killed else "SURVIVED"
            print(f"{mutant.name} | {mutant.method} | {said} | {seconds:.1f}", flush=True)
    print(time.strftime("done %H:%M"), file=sys.stderr)


if __name__ == "__main__":
    main()
