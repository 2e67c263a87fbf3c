"""Plots claims 3 to 5 of Deep Ranking Ensembles from the runs of `ranking_ablation.py`.

    python benchmarks/ranking_ablation.py --experience adaboost.parquet --out runs.jsonl \
        --variants "$(python benchmarks/ranking_claims.py --names)" --tasks-limit 60 --seeds 1
    python benchmarks/ranking_claims.py --runs runs.jsonl --figures figures
"""

import argparse
import json
from pathlib import Path

import numpy as np

from foretune_lab.bench.comparison import Compared
from foretune_lab.bench.figures import figures_of_ranks
from foretune_lab.bench.metrics import ranks_by_task

REPORTED = (10, 25, 50)
CLAIMS = {
    3: {
        "list-wise no-F": "list-wise, weighted",
        "list-wise unweighted no-F": "list-wise",
        "list-wise inverse linear no-F": "weights 1/rank",
        "list-wise attention no-F": "weights by position",
        "pair-wise no-F": "pair-wise",
        "point-wise no-F": "point-wise",
        "regression no-F": "regression",
    },
    4: {
        "dre": "M, T, F",
        "list-wise no-F": "M, T",
        "no-T": "M, F",
        "no-T-no-F": "M",
        "no-M": "T, F",
        "dre-ri": "T",
        "random": "random search",
    },
    5: {
        "dre": "EI, each scorer",
        "dre ei": "EI",
        "dre lcb": "LCB",
        "dre mean": "average rank",
        "ranks ei": "EI on ranks",
        "random": "random search",
    },
}
"""The variants of the ablation that each claim compares, and their names in a plot."""


def side_by_side(rows: list[dict], claim: int) -> Compared:
    """Return the claim's variants on the runs that all of them have."""
    names = CLAIMS[claim]
    regrets = {(row["variant"], row["task"], row["seed"]): row["regret"] for row in rows}
    tasks = sorted({task for _, task, _ in regrets})
    seeds = sorted({seed for _, _, seed in regrets})
    whole = [t for t in tasks if all((n, t, s) in regrets for n in names for s in seeds)]
    found = np.array([[[regrets[n, t, s] for s in seeds] for t in whole] for n in names])
    return Compared(
        f"claim {claim}",
        tuple(names.values()),
        ranks_by_task(np.round(found, 9)),
        found.mean(axis=2),
        f"{len(whole)} tasks and {len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'}",
    )


def report(methods: Compared) -> None:
    """Print average ranks with their 95% confidence, and the differences that may be chance."""
    ranks = methods.average_ranks()
    half = np.maximum(ranks.high - ranks.mean, ranks.mean - ranks.low)
    print(
        f"\n{methods.name}, {methods.averaging_note}: "
        f"average rank after {REPORTED}, over all trials"
    )
    for place, name in enumerate(methods.methods):
        at = [f"{ranks.mean[place, n - 1]:.2f} ± {half[place, n - 1]:.2f}" for n in REPORTED]
        print(f"{name:22s}", *at, f"{ranks.mean[place].mean():.2f}", sep=" | ")
    for n in REPORTED:
        groups = methods.after(n).groups
        print(f"not told apart after {n}:", "; ".join(" = ".join(group) for group in groups))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="only name the variants to run")
    parser.add_argument("--runs", type=Path, nargs="+", help="of ranking_ablation.py")
    parser.add_argument("--figures", type=Path, help="a folder for PNG files")
    given = parser.parse_args()
    if given.names:
        print(",".join(dict.fromkeys(name for names in CLAIMS.values() for name in names)))
        return
    rows = [json.loads(line) for file in given.runs for line in file.read_text().splitlines()]
    for claim in CLAIMS:
        methods = side_by_side(rows, claim)
        report(methods)
        if given.figures is not None:
            (figure,) = figures_of_ranks(methods, ()).values()
            figure.savefig(given.figures / f"ranking-claim-{claim}.png", dpi=110)


if __name__ == "__main__":
    main()
