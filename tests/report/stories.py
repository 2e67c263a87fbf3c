"""Small stories that the tests of the report share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foretune.experience import Direction, Metric, Status
from foretune.experience.curves import Curve
from foretune.experience.trial import Trial
from foretune.report.story import (
    ColumnLoss,
    MapPoint,
    Step,
    Story,
    StorySource,
    steps_of,
)
from foretune.space import Space

SCORE = Metric("score", Direction.MAX)
FLAT = Space.of({"rate": (1e-4, 1.0, "log"), "layers": (1, 5), "kind": ["relu", "tanh"]})
STAGED = Space.of(
    {
        "scaler": {"none": {}, "standard": {}},
        "model": {"tree": {"depth": (1, 9)}, "line": {"slope": (0.0, 1.0)}},
    },
    stages=("scaler", "model"),
)
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"alert('owned')\">&amp;"
)


def some_trials(space: Space, n: int, *, metric: str = "score", seed: int = 0) -> list[Trial]:
    """n trials that all succeeded, with scores drawn at random."""
    scores = np.random.default_rng(seed).random(n).round(4).tolist()
    configs = space.sample(n, seed=seed).dicts()
    return [
        Trial(number, config, Status.DONE, {metric: score}, 1.5, chosen_by="random")
        for number, (config, score) in enumerate(zip(configs, scores, strict=True))
    ]


def told(space: Space = STAGED, n: int = 30, **given: Any) -> Story:
    """A story of n successful trials, with whatever else is given."""
    trials = given.pop("trials", None) or some_trials(space, n)
    best = max(trials, key=lambda trial: trial.values.get("score", -1.0))
    story = {
        "title": "table.csv",
        "metrics": [SCORE],
        "best": best.number,
        "pipeline": steps_of(space, best.config),
        "expected_random": np.linspace(0.5, 0.99, n).tolist(),
    }
    return Story(space=space, trials=trials, **{**story, **given})


def stopped_early(n: int = 300, **given: Any) -> Story:
    """A story of n trials with curves: one in ten is complete, others are stopped or paused."""
    statuses = [Status.DONE, *[Status.STOPPED] * 4, *[Status.PAUSED] * 5]
    trials = []
    for trial in some_trials(FLAT, n):
        status, end = statuses[trial.number % 10], trial.values["score"]
        last = 27 if status is Status.DONE else 3 + trial.number % 3
        steps = range(1, last + 1)
        curve = Curve(list(steps), {"score": [end * (1 - 0.5**step) for step in steps]})
        values = {"score": curve.values["score"][-1]}
        trials.append(replace(trial, status=status, values=values, curve=curve))
    done = [trial for trial in trials if trial.status is Status.DONE]
    best = max(done, key=lambda trial: trial.values["score"])
    return told(FLAT, n, trials=trials, best=best.number, **given)


def several(losses: Sequence[Sequence[float]]) -> Story:
    """A story of trials with so many losses each, called a, b, c, ..."""
    names = "abcdef"[: len(losses[0])]
    trials = [
        Trial(number, trial.config, Status.DONE, dict(zip(names, each, strict=True)), 1.0)
        for number, (trial, each) in enumerate(
            zip(some_trials(FLAT, len(losses)), losses, strict=True)
        )
    ]
    metrics = [Metric(name) for name in names]
    return Story(title="mine", space=FLAT, trials=trials, metrics=metrics, objectives=len(names))


def hostile() -> Story:
    """Every text that can come from a user is an attack."""
    space = Space.of({f"name{HOSTILE}": ["plain", HOSTILE], "x": (0.0, 1.0)})
    trials = [
        Trial(
            number,
            config,
            Status.FAILED if number % 4 == 3 else Status.DONE,
            {} if number % 4 == 3 else {HOSTILE: config["x"]},
            1.0,
            reason=HOSTILE,
            chosen_by=HOSTILE,
        )
        for number, config in enumerate(space.sample(24, seed=0).dicts())
    ]
    return Story(
        title=HOSTILE,
        space=space,
        metrics=[Metric(HOSTILE)],
        trials=trials,
        when=HOSTILE,
        command=HOSTILE,
        facts=[(HOSTILE, HOSTILE)],
        assumptions=[HOSTILE],
        best=0,
        pipeline=[Step(HOSTILE, HOSTILE, {HOSTILE: HOSTILE})],
        ensemble=[(1.0, 0)],
        columns=[ColumnLoss(HOSTILE, 1.0, True)],
        transferred=[StorySource(HOSTILE, 1, 2, HOSTILE)],
        advice=[HOSTILE],
        embedding=[MapPoint(float(i), float(i % 5), HOSTILE, 0.5, i) for i in range(20)],
        timings=[(HOSTILE, 1.0)],
        versions={HOSTILE: HOSTILE},
        next_steps=[(HOSTILE, HOSTILE)],
    )
