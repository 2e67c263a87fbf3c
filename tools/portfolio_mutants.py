"""Which faults in the builders of portfolios their tests find, one at a time, in a copy.

python tools/portfolio_mutants.py [--only NAME ...]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("tests/methods/zero_shot", "tests/automl/live_portfolio", "tests/cli/test_portfolio.py")


@dataclass(frozen=True)
class Mutant:
    """One line that is wrong."""

    name: str
    path: str
    right: str
    wrong: str


MUTANTS = (
    Mutant("recorded: the aggregate is lost", "methods/zero_shot/build.py",
           "find_aggregate(recipe.aggregate)", 'find_aggregate("mean")'),
    Mutant("recorded: the seed is lost", "methods/zero_shot/build.py",
           "seed=recipe.seed, caps", "seed=0, caps"),
    Mutant("recorded: the normalisation is lost", "methods/zero_shot/build.py",
           "loss_table(experience, recipe.normalisation)", "loss_table(experience)"),
    Mutant("live: the aggregate is lost", "automl/live_portfolio/run.py",
           "find_aggregate(self.recipe.aggregate),", 'find_aggregate("mean"),'),
    Mutant("live: the seed is lost", "automl/live_portfolio/run.py",
           "seed=self.recipe.seed,\n            caps", "seed=0,\n            caps"),
    Mutant("live: the normalisation is lost", "automl/live_portfolio/run.py",
           "normalisation=self.recipe.normalisation,", "normalisation=None,"),
    Mutant("live: the number of workers is lost", "automl/live_portfolio/run.py",
           "workers=self.workers, limits", "workers=1, limits"),
    Mutant("obo: nothing is reached so far", "methods/zero_shot/obo.py",
           "chosen = greedy(losses, self.k).chosen", "chosen = np.zeros(1, dtype=np.int64)"),
    Mutant("obo: a running job is forgotten", "methods/zero_shot/obo.py",
           "| jobs.pending[self._at]\n        if not", "\n        if not"),
    Mutant("mf: tasks are not shuffled", "methods/zero_shot/mf.py",
           "return panel_of(self.jobs, np.random.default_rng(self.seed))",
           "return np.arange(len(self.jobs.possible))"),
    Mutant("mf: another eta", "methods/zero_shot/mf.py", "ETA = 3\n", "ETA = 2\n"),
    Mutant("mf: no newcomer starts above", "methods/zero_shot/mf.py",
           "if self.climb.is_behind(rung + 1) and", "if False and"),
    Mutant("mf: one location decides", "methods/zero_shot/mf.py",
           "location = location_in_turn(promoted, min(len(members[-1]) + 1, self.k))",
           "location = 0"),
)  # fmt: skip


def is_killed(mutant: Mutant) -> bool:
    """Return whether a test fails."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, place / name)
        shutil.copy(ROOT / "pyproject.toml", place)
        path = place / "src/foretune" / mutant.path
        text = path.read_text("utf-8")
        if mutant.right not in text:
            raise SystemExit(f"{mutant.name}: the line is no longer in {mutant.path}")
        path.write_text(text.replace(mutant.right, mutant.wrong), "utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *TESTS],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(place / "src")},
            capture_output=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    return done.returncode == 1


def main() -> None:
    """Print one line for each mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[m.name for m in MUTANTS])
    given = parser.parse_args()
    for mutant in MUTANTS:
        if mutant.name in given.only:
            print(f"{mutant.name} | {'killed' if is_killed(mutant) else 'SURVIVED'}", flush=True)


if __name__ == "__main__":
    main()
