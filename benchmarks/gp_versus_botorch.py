"""Times one suggestion by Foretune, BoTorch and scikit-learn: fit, expected improvement, argmax.

    python benchmarks/gp_versus_botorch.py

It needs the packages botorch (and so torch) and scikit-learn. The libraries take turns within each
repeat, on the same data and one thread; medians are reported. "Cold" is a fit from the prior's
mode, like those of BoTorch and scikit-learn. "Warm" is the fit of a running optimiser, from the
last anchor. "Resumed" is the work once after a restart: all anchors, then the warm fit.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from foretune.numerics.acquisition import log_expected_improvement
from foretune.numerics.anchored import AnchoredFit, last_anchor
from foretune.numerics.gp import GP, fit_hyper

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


def problem(n: int, d: int, m: int, seed: int) -> Problem:
    """Return observations of a smooth function with a few inert inputs, and candidates."""
    rng = np.random.default_rng(seed)
    x, candidates = rng.random((n, d)), rng.random((m, d))
    y = np.sin(6.0 * x[:, 0]) + 2.0 * (x[:, 1] - 0.3) ** 2 + x[:, 2] * x[:, 3 % d]
    return x, y + 0.01 * rng.standard_normal(n), candidates


def suggest_cold(x: np.ndarray, y: np.ndarray, candidates: np.ndarray) -> int:
    return best_candidate(GP.condition(x, y, fit_hyper(x, y)), candidates)


def suggest_anchored(
    fits: AnchoredFit, x: np.ndarray, y: np.ndarray, candidates: np.ndarray
) -> int:
    return best_candidate(fits.gp(x, y), candidates)


def best_candidate(gp: GP, candidates: np.ndarray) -> int:
    mean, std = gp.predict(candidates)
    return int(np.argmax(log_expected_improvement(mean, std, float(gp.y.min()))))


def suggest_botorch(x: np.ndarray, y: np.ndarray, candidates: np.ndarray) -> int:
    model = SingleTaskGP(torch.from_numpy(x), torch.from_numpy(y)[:, None])
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    score = LogExpectedImprovement(model, best_f=float(y.min()), maximize=False)
    with torch.no_grad():
        return int(score(torch.from_numpy(candidates)[:, None, :]).argmax())


def suggest_sklearn(x: np.ndarray, y: np.ndarray, candidates: np.ndarray) -> int:
    kernel = ConstantKernel() * Matern(np.ones(x.shape[1]), nu=2.5) + WhiteKernel(1e-3)
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)
    mean, std = model.predict(candidates, return_std=True)
    return int(np.argmax(log_expected_improvement(mean, std, float(y.min()))))


def time_calls(work: Callable[[], int]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def one_repeat(data: Problem) -> dict[str, float]:
    """Return the seconds of each library on one problem."""
    x, y, candidates = data
    warm = AnchoredFit()
    anchor = last_anchor(len(x))
    warm.hyper(x[:anchor], y[:anchor])
    return {
        "ours, cold": time_calls(lambda: suggest_cold(x, y, candidates)),
        "ours, warm": time_calls(lambda: suggest_anchored(warm, x, y, candidates)),
        "ours, resumed": time_calls(lambda: suggest_anchored(AnchoredFit(), x, y, candidates)),
        "BoTorch": time_calls(lambda: suggest_botorch(x, y, candidates)),
        "scikit-learn": time_calls(lambda: suggest_sklearn(x, y, candidates)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=100)
    parser.add_argument("--dimensions", type=int, default=9)
    parser.add_argument("--candidates", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        one_repeat(problem(20, options.dimensions, 100, seed=0))  # This fills caches.
        repeats = [
            one_repeat(problem(options.observations, options.dimensions, options.candidates, seed))
            for seed in range(1, options.repeats + 1)
        ]
    medians = {name: float(np.median([r[name] for r in repeats])) for name in repeats[0]}
    print(f"{'':14} {'median s':>9} {'times BoTorch':>14}")
    for name, seconds in medians.items():
        print(f"{name:14} {seconds:9.4f} {'1/' + format(medians['BoTorch'] / seconds, '.1f'):>14}")


if __name__ == "__main__":
    main()
