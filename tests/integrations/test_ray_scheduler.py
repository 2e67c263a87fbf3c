"""The scheduler in runs of Ray Tune; skipped without Ray."""

import json
import tempfile
from pathlib import Path

import pytest

ray = pytest.importorskip("ray")
from ray import tune  # noqa: E402
from ray.tune import Checkpoint  # noqa: E402

from foretune.integrations.ray_scheduler import ForetuneScheduler  # noqa: E402
from foretune.integrations.ray_tune import ForetuneSearcher  # noqa: E402
from tests.refusals import refuses  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def train(config):
    """Report 9 steps; go on from a checkpoint. The folder of the run counts the calls."""
    first, checkpoint = 1, tune.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            first = json.loads(Path(folder, "step.json").read_text()) + 1
    with Path(config["log"]).open("a") as log:
        log.write(f"{config['x']} {first}\n")
    for step in range(first, 10):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "step.json").write_text(json.dumps(step))
            report = {"loss": config["x"], "step": step}
            tune.report(report, checkpoint=Checkpoint.from_directory(folder))


def run(folder, scheduler, losses):
    log = folder / "calls.txt"
    log.touch()
    space = {"x": tune.grid_search(losses), "log": str(log)}
    options = tune.TuneConfig(scheduler=scheduler, metric="loss", mode="min", reuse_actors=True)
    storage = tune.RunConfig(storage_path=str(folder), verbose=0)
    grid = tune.Tuner(train, param_space=space, tune_config=options, run_config=storage).fit()
    assert not grid.errors
    steps = {each.config["x"]: each.metrics["step"] for each in grid}
    calls = [line.split() for line in log.read_text().splitlines()]
    return [steps[loss] for loss in losses], [(float(x), int(first)) for x, first in calls]


def test_without_pauses_trials_stop_unless_they_are_among_the_best_so_far(tmp_path):
    scheduler = ForetuneScheduler("asha", last_step=9, time_attr="step")
    steps, calls = run(tmp_path, scheduler, [0.5, 0.6, 0.4, 0.7])
    assert steps == [9, 1, 9, 1]
    assert [first for _, first in calls] == [1] * 4


def test_paused_trials_go_on_from_their_checkpoints(tmp_path):
    scheduler = ForetuneScheduler("halving", last_step=9, time_attr="step", pause=True)
    losses = [0.5, 0.6, 0.4, 0.7, 0.1, 0.9, 0.8, 0.2, 0.3]
    steps, calls = run(tmp_path, scheduler, losses)
    # Of nine trials the best three go on after step 1: the last one at once, and the other two when
    # all have reached it. The best of these goes on after step 3.
    assert steps == [1, 1, 1, 1, 9, 1, 1, 3, 3]
    assert calls[9:] == [(0.1, 2), (0.2, 2), (0.1, 4)]


def test_the_farthest_trial_runs_to_its_end_if_none_is_complete(tmp_path):
    scheduler = ForetuneScheduler("halving", last_step=9, time_attr="step", pause=True)
    steps, _ = run(tmp_path, scheduler, [0.5, 0.2, 0.4])
    assert steps == [1, 9, 1]


def test_the_searcher_learns_the_last_reports_of_trials_that_were_paused(tmp_path):
    searcher = ForetuneSearcher("random", seed=0)
    scheduler = ForetuneScheduler("asha", last_step=9, time_attr="step", pause=True)
    (tmp_path / "calls.txt").touch()
    options = tune.TuneConfig(
        scheduler=scheduler,
        search_alg=searcher,
        num_samples=4,
        metric="loss",
        mode="min",
        reuse_actors=True,
    )
    space = {"x": tune.uniform(0.0, 1.0), "log": str(tmp_path / "calls.txt")}
    storage = tune.RunConfig(storage_path=str(tmp_path), verbose=0)
    grid = tune.Tuner(train, param_space=space, tune_config=options, run_config=storage).fit()
    assert sorted(each.metrics["step"] for each in grid)[-1] == 9
    known = sorted(trial.loss for trial in searcher._trials.values())
    assert known == sorted(each.config["x"] for each in grid)


def test_mistakes_are_named():
    with refuses("unknown-policy", value="ashe"):
        ForetuneScheduler("ashe", last_step=9)
    with refuses("no-metric-and-mode"):
        ForetuneScheduler(last_step=9).set_search_properties("loss", None)
    assert not ForetuneScheduler(last_step=9, metric="a").set_search_properties("loss", "min")
