"""The report of a search: what the page needs, gathered from its trials."""

import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from foretune._base.arrays import Floats
from foretune.experience import Metric
from foretune.experience.trial import Trial, best_first
from foretune.methods.contracts import Observations, Target
from foretune.report.curves import random_search_curve
from foretune.report.embedding import flatten_embeddings
from foretune.report.story import MapPoint, Story, StorySource, main_choice, steps_of
from foretune.report.trial_curves import PastBand
from foretune.search.method_entry import Method
from foretune.search.registry import METHODS
from foretune.space import Encoded, Space

FEWEST_TO_EXTRAPOLATE = 8
"""Trials below which a guess at random search would be worth nothing."""
GUESSED = 1000
MAPPED = 200
PACKAGES = ("foretune", "numpy", "scipy")


@dataclass(frozen=True, slots=True)
class StudySummary:
    """What is known of a study that was tuned."""

    title: str
    space: Space
    metrics: Sequence[Metric]
    """What the search looked for, at once."""
    trials: Sequence[Trial]
    method: Method
    seed: int = 0
    relied_on: str = ""
    """What the method says about itself; see `Optimizer.explained`."""
    past: StorySource | None = None
    past_curves: PastBand | None = None
    when: str = ""
    command: str = ""
    facts: Sequence[tuple[str, str]] = ()
    timings: Sequence[tuple[str, float]] = ()
    next_steps: Sequence[tuple[str, str]] = ()


def story(tuned: StudySummary) -> Story:
    """The story of a study, whether or not a trial has succeeded."""
    first = tuned.metrics[0]
    good = best_first(tuned.trials, first)
    best = good[0] if good and len(tuned.metrics) == 1 else None
    names = {metric.name for metric in tuned.metrics}
    return Story(
        title=tuned.title,
        space=tuned.space,
        metrics=tuned.metrics,
        objectives=len(tuned.metrics),
        # Nobody has said in which direction other values are better.
        trials=[trial.select_values(names) for trial in tuned.trials],
        when=tuned.when,
        command=tuned.command,
        facts=tuned.facts,
        best=best.number if best else None,
        pipeline=steps_of(tuned.space, best.config) if best else (),
        transferred=() if tuned.past is None else (tuned.past,),
        advice=_advice(tuned),
        expected_random=expect_random_search(tuned.space, first, tuned.trials, seed=tuned.seed),
        embedding=_map(tuned, good),
        past_curves=tuned.past_curves,
        timings=tuned.timings,
        versions=versions(PACKAGES),
        next_steps=tuned.next_steps,
    )


def opening(by: Sequence[str], tasks: str | None) -> str:
    """How many trials were chosen before any model had its say; empty where none was.

    by: what chose each trial. tasks: what past ones are called; None where there are none.
    """
    opened = by.count("start")
    if not opened:
        return ""
    first = "The first trial was" if opened == 1 else f"The first {opened} trials were"
    if tasks is None:
        what = "drawn from the whole space" if opened == 1 else "spread over the whole space"
    elif opened == 1:
        what = f"a configuration that suited past {tasks}"
    else:
        what = f"configurations that suited past {tasks} and complement each other"
    return f"{first} {what}; the model chose the other {len(by) - opened}."


def expect_random_search(
    space: Space,
    metric: Metric,
    trials: Sequence[Trial],
    *,
    seed: int,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> list[float] | None:
    """The best that random search is expected to find, by a Gaussian process of the trials.

    within: between which values the metric lies.
    """
    good = best_first(trials, metric)
    if len(good) < FEWEST_TO_EXTRAPOLATE:
        return None
    configs = space.encode([trial.config for trial in good])
    losses = np.array([[metric.sign * trial.values[metric.name]] for trial in good])
    values = metric.sign * _sample_losses(space, configs, losses, seed=seed)
    return list(random_search_curve(np.clip(values, *within), len(trials), metric.direction))


def draw_map(
    space: Space, metric: Metric, good: Sequence[Trial], choice: str, *, seed: int
) -> list[MapPoint]:
    """The successful trials among configurations that were not tried, near where alike.

    choice: the hyperparameter that names what was tried.
    """
    drawn = space.sample(MAPPED, seed=seed)
    tried = space.encode([trial.config for trial in good])
    flat = flatten_embeddings(np.concatenate([drawn.x, tried.x]), seed=seed)
    known: list[tuple[float | None, int | None]] = [(None, None)] * len(drawn)
    known += [(trial.values[metric.name], trial.number) for trial in good]
    configs = [*drawn.dicts(), *(trial.config for trial in good)]
    return [
        MapPoint(float(x), float(y), str(config.get(choice, "")), value, number)
        for (x, y), config, (value, number) in zip(flat, configs, known, strict=True)
    ]


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Of Python, and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _map(tuned: StudySummary, good: Sequence[Trial]) -> list[MapPoint] | None:
    """None where nothing is chosen that would tell points apart."""
    choice = main_choice(tuned.space)
    if choice is None:
        return None
    name = tuned.space.names[choice]
    return draw_map(tuned.space, tuned.metrics[0], good, name, seed=tuned.seed)


def _advice(tuned: StudySummary) -> list[str]:
    """What the method did and why, a sentence each."""
    said = [f"{tuned.method.name}: {tuned.method.summary}."]
    by = [trial.chosen_by for trial in tuned.trials]
    opened = opening(by, None if tuned.past is None else "tasks")
    return [*said, *filter(None, (opened, tuned.relied_on))]


def _sample_losses(space: Space, configs: Encoded, losses: Floats, *, seed: int) -> Floats:
    """(GUESSED,): losses of random configurations, drawn from what the trials let expect."""
    gp = METHODS["gp"]
    seen = Observations(configs, losses, np.zeros(len(losses), dtype=bool))
    posterior = gp.learn(None, seed=seed).surrogate(Target(space)).condition(seen, seed=seed)
    belief = posterior.predict(space.sample(GUESSED, seed=seed))
    noise = np.random.default_rng(seed).standard_normal(GUESSED)
    centre, spread = losses.mean(), losses.std() or 1.0
    guessed: Floats = centre + spread * (belief.mean + belief.std * noise)
    # What the process makes up beyond the best that was seen is no evidence for random search.
    cut: Floats = np.maximum(guessed, losses.min())
    return cut
