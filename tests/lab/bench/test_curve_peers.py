"""What every peer that stops trials early must do on recorded curves: those that are installed."""

import importlib
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.peers.curve_play import CurvePlayer
from benchmarks.peers.curve_problem import CurveProblem
from benchmarks.peers.objective import Parameter, Problem

LAST = 9
N = 60
BUDGET = 6.0
ADAPTERS = {
    "optuna-tpe-hyperband": ("optuna", "curves_optuna"),
    "optuna-tpe-median": ("optuna", "curves_optuna"),
    "syne-tune-asha": ("syne_tune", "curves_syne_tune"),
    "syne-tune-mobster": ("syne_tune", "curves_syne_tune"),
    "dehb": ("dehb", "curves_dehb"),
    "smac-hyperband": ("pyrfr", "curves_smac"),
    "neps-asha": ("neps", "curves_neps"),
}
"""The package that a peer needs, and its adapter."""


@pytest.fixture(scope="module")
def setting() -> CurveProblem:
    """Curves of a bowl over a rate on a logarithmic scale and a choice; they do not cross."""
    rng = np.random.default_rng(0)
    rates, kinds = 10 ** rng.uniform(-4, 0, N), rng.integers(0, 2, N).astype(float)
    ends = (np.log10(rates) + 2) ** 2 / 4 + 0.2 * kinds
    steps = np.tile(np.arange(1.0, LAST + 1), N)
    parameters = (
        Parameter("rate", "float", 1e-4, 1.0, log=True),
        Parameter("kind", "categorical", 0.0, 1.0, log=False),
    )
    rows = np.column_stack([rates, kinds])
    problem = Problem("t", parameters, rows, ends, {}, "", ())
    offsets = np.arange(0.0, N * LAST + 1, LAST)
    losses = np.repeat(ends, LAST) + 1 / steps
    return CurveProblem(problem, offsets, steps, losses, steps, float(LAST), 1.0)


@pytest.mark.parametrize("peer", ADAPTERS)
def test_a_peer_spends_its_budget_stops_trials_and_finds_good_ones(
    peer: str, setting: CurveProblem
) -> None:
    package, adapter = ADAPTERS[peer]
    pytest.importorskip(package, reason=f"needs the package '{package}'")
    make = importlib.import_module(f"benchmarks.peers.adapters.{adapter}").PEERS[peer]
    made = CurvePlayer(setting, make(setting, 1)).play(BUDGET)
    again = CurvePlayer(setting, make(setting, 1)).play(BUDGET)
    cost = made["cost"]
    assert cost[-1] >= BUDGET > cost[-2]
    assert all(later >= before for before, later in pairwise(cost))
    # A decision costs at most a complete run, and some trials ended before that.
    spent = np.diff(cost, prepend=0.0)
    assert spent.max() <= 1 + 1e-9
    assert spent.min() < 1
    assert set(np.round(made["value"], 9)) <= set(np.round(setting.losses, 9))
    assert made["best"][-1] < np.median(setting.losses[LAST - 1 :: LAST])
    np.testing.assert_array_equal(made["value"], again["value"])
