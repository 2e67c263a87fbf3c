"""The top of a report: the result in one sentence and a few numbers."""

from collections import Counter

import numpy as np

from foretune.experience import Status
from foretune.report.curves import trials_needed
from foretune.report.markup import Markup, element
from foretune.report.sections import better_text
from foretune.report.story import Story
from foretune.report.wording import count_text, duration_text, list_text, number_text, shorten


def headline(story: Story) -> Markup:
    """Return the head of the page."""
    kicker = " · ".join(part for part in ("Foretune report", story.when) if part)
    return element(
        "header",
        element("p", kicker, class_="kicker"),
        element("h1", story.title),
        element("p", _sentence(story), class_="lead"),
        element("dl", [_tile(*tile) for tile in _tiles(story)], class_="tiles"),
    )


def _sentence(story: Story) -> str:
    done = sum(trial.status is Status.DONE for trial in story.trials)
    if not story.trials:
        return "No trial has begun yet."
    if not done:
        return _nothing_found(story)
    if story.objectives > 1:
        goals = [metric.name for metric in story.metrics[: story.objectives]]
        return f"{count_text(len(story.trials), 'trial')} looked for {list_text(goals)} at once."
    value = story.best_value
    if value is None:
        return f"{count_text(done, 'trial')} succeeded, but none was named the best."
    among = f"The {story.superlative} of {len(story.trials):,} trials"
    if len(story.trials) == 1:
        among = "The only trial"
    said = f"{among} reached {story.metric.name} {number_text(value)}{_with(story)}."
    if story.without_model:
        said += " No model was made."
    if story.blended is not None:
        said += (
            f" The model blends {len(story.ensemble)} of them, which reach "
            f"{number_text(story.blended)} together, on the rows that chose them."
        )
    if story.test_score is not None:
        said += f" On data that it has not seen, the model scores {number_text(story.test_score)}."
    return said


def _nothing_found(story: Story) -> str:
    ended = [trial for trial in story.trials if trial.is_over]
    if not ended:
        return f"{count_text(len(story.trials), 'trial')} running; none has ended yet."
    said = f"None of {count_text(len(ended), 'trial')} succeeded."
    reasons = Counter(trial.reason for trial in ended if trial.reason)
    if reasons:
        reason, times = reasons.most_common(1)[0]
        said += f" Most often ({_often(times)}): {shorten(reason, 200)}"
    return said


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"


def _with(story: Story) -> str:
    """Return the algorithm of the best trial, if it has a name."""
    chosen = story.label_of(story.best)
    return f" with {chosen}" if chosen else ""


def _tiles(story: Story) -> list[tuple[str, str, str]]:
    """Return (name, number, note) of each tile."""
    tiles = []
    if story.objectives > 1:
        tiles += _best_of_each(story)
    elif story.best_value is not None:
        note = f"trial {story.best}; {better_text(story.metric.direction)}"
        name = f"{story.superlative.capitalize()} {story.metric.name}"
        tiles.append((name, number_text(story.best_value), note))
    if story.test_score is not None:
        tiles.append(("Test score", number_text(story.test_score), "on unseen data"))
    if story.without_columns is not None:
        value = number_text(story.without_columns)
        tiles.append(("Without columns", value, "the same guess for every row"))
    tiles.append(("Trials", f"{len(story.trials):,}", _endings(story)))
    if any(trial.last_step for trial in story.trials):
        tiles.append(_steps_tile(story))
    seconds = np.array([trial.seconds for trial in story.trials], dtype=np.float64)
    if np.isfinite(seconds).any():
        note = f"{duration_text(float(np.nanmedian(seconds)))} a trial (median)"
        tiles.append(("Time in trials", duration_text(float(np.nansum(seconds))), note))
    if story.random_curve and story.objectives == 1 and story.best_value is not None:
        tiles.append(_against_random(story, story.best_value))
    return tiles


def _steps_tile(story: Story) -> tuple[str, str, str]:
    """Return how many steps were taken, and how many that saved."""
    steps = [trial.last_step or 0.0 for trial in story.trials]
    complete = [t.last_step or 0.0 for t in story.trials if t.status is Status.DONE]
    most = max(complete, default=0.0) * len(steps)
    note = f"{sum(steps) / most:.0%} of what complete trials would take" if most else "in trials"
    return "Steps", number_text(sum(steps)), note


def _best_of_each(story: Story) -> list[tuple[str, str, str]]:
    tiles = []
    for metric in story.metrics[: story.objectives]:
        known = [
            (metric.sign * trial.values[metric.name], trial)
            for trial in story.trials
            if trial.status is Status.DONE and np.isfinite(trial.values.get(metric.name, np.nan))
        ]
        if known:
            _, trial = min(known, key=lambda pair: pair[0])
            note = f"trial {trial.number}; {better_text(metric.direction)}"
            tiles.append((f"Best {metric.name}", number_text(trial.values[metric.name]), note))
    return tiles


def _endings(story: Story) -> str:
    counts = Counter(trial.status for trial in story.trials)
    names = {Status.FAILED: "failed", Status.TIMEOUT: "out of time"}
    names |= {Status.STOPPED: "stopped early", Status.PAUSED: "paused", Status.RUNNING: "running"}
    said = [f"{counts[status]:,} {name}" for status, name in names.items() if counts[status]]
    return ", ".join(said) or "all succeeded"


def _against_random(story: Story, value: float) -> tuple[str, str, str]:
    curve = story.random_curve
    needed = trials_needed(curve, value, story.metric.direction)
    shown = f"more than {len(curve):,}" if needed is None else f"about {needed:,}"
    return ("Random search needs", shown, "trials for this score, by expectation")


def _tile(name: str, number: str, note: str) -> Markup:
    return element(
        "div", element("dt", name), element("dd", number), element("dd", note, class_="note")
    )
