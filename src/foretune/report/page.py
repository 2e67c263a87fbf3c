"""One HTML file that tells the story of a run. It needs no network and trusts no text.

A content security policy lets the page load nothing, and run only its own style and script, which
are known by their hashes. So even an error in escaping could run nothing.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from foretune._base.files import write_text
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.report import sections
from foretune.report.curves import unbeaten
from foretune.report.headline import headline
from foretune.report.importance import Importance, importance
from foretune.report.markup import Markup, element
from foretune.report.payload import StoryColumns, columns_of, payload
from foretune.report.story import Story
from foretune.report.wording import count_text

SCRIPTS = (
    "data.js", "scales.js", "plot.js", "curve.js", "slices.js", "map.js", "front.js", "table.js",
    "learning.js", "main.js",
)  # fmt: skip
"""In this order, because each script may use names of those before it."""
OF_CURVES = "learning.js"
"""The script that only pages with learning curves have."""


def write_page(story: Story, path: Path, *, seed: int = 0) -> None:
    """Write the report to `path`, in one step or not at all."""
    text = page(story, seed=seed)
    try:
        write_text(path, text)
    except OSError as error:
        raise UsageError(
            f"a report must go to a folder that can be written to, but '{path}' gave "
            f"'{error.strerror or error}': choose another",
            rule="unwritable-report",
            field="path",
            value=path,
        ) from error


def page(story: Story, *, seed: int = 0) -> str:
    """Return the report as HTML."""
    columns = columns_of(story, seed=seed)
    fair = columns.sampled
    found = importance(
        columns.configs.take(fair), columns.losses[columns.drawn[fair], 0], seed=seed
    )
    style, script = _style(), _script(with_curves=_has_curves(story))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{story.title} - Foretune report"),
        element("style", style),
    )
    body = element(
        "body",
        headline(story),
        element("main", _parts(story, columns, found)),
        element("footer", "Written by Foretune. This file is complete: it loads nothing."),
        element("div", id="tip", class_="tip", role="status", hidden=True),
        element("script", payload(story, columns, found), type="application/json", id="story"),
        element("script", script),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def _parts(story: Story, columns: StoryColumns, found: Importance) -> list[Markup]:
    done = any(trial.status is Status.DONE for trial in story.trials)
    parts = [element("noscript", sections.paragraph("Pictures and trials need JavaScript."))]
    if done:
        parts.append(_course(story))
    if _has_curves(story):
        parts.append(_learning(story))
    if story.objectives > 1 and done:
        parts.append(_front(story, columns))
    if story.pipeline or story.objectives == 1:
        parts.append(sections.best_pipeline(story))
    parts += [sections.next_steps(story), sections.columns_that_count(story)]
    if done:
        parts.append(sections.effects(story, found))
    if story.embedding:
        parts.append(_map(len(story.embedding)))
    parts.append(_trials(story, len(columns.drawn)))
    parts += [sections.transfer_section(story), sections.data_facts(story), sections.about(story)]
    return parts


def _has_curves(story: Story) -> bool:
    return any(trial.curve is not None for trial in story.trials)


def _course(story: Story) -> Markup:
    label = (
        f"The best {story.metric.name} so far, over {count_text(len(story.trials), 'trial')}; "
        "the table below holds the same numbers."
    )
    return sections.section(
        "course",
        "The course of the search",
        element("div", id="course-key", class_="key"),
        sections.canvas("course-plot", label, "plot tall"),
    )


def _learning(story: Story) -> Markup:
    curves = sum(trial.curve is not None for trial in story.trials)
    label = f"The {story.metric.name} of {count_text(curves, 'trial')} at each step they reported"
    return sections.section(
        "learning",
        "Learning curves",
        sections.paragraph("What trials reported while they ran. A dot marks their last report."),
        element("div", id="learning-key", class_="key"),
        sections.canvas("learning-plot", label, "plot tall"),
    )


def _front(story: Story, columns: StoryColumns) -> Markup:
    first, second = (metric.name for metric in story.metrics[:2])
    joined = len(unbeaten(columns.losses[:, :2]))
    said = f"{count_text(joined, 'trial')} cannot be improved in one without losing in the other"
    if story.objectives > 2:
        in_all = len(unbeaten(columns.losses[:, : story.objectives]))
        said = (
            f"Of all {story.objectives} metrics together, {count_text(in_all, 'trial')} cannot be "
        )
        said += f"improved in one without losing in another; of these two alone, {joined:,}"
    return sections.section(
        "front",
        f"{first} against {second}",
        sections.paragraph(f"{said}; the line joins them."),
        sections.canvas("front-plot", f"Trials by {first} and {second}", "plot tall"),
    )


def _map(points: int) -> Markup:
    return sections.section(
        "map",
        "The map of pipelines",
        sections.paragraph("Pipelines that lie near each other behave alike; rings were tried."),
        element("div", id="map-key", class_="key"),
        sections.canvas("map-plot", f"A map of {count_text(points, 'pipeline')}", "plot square"),
    )


def _trials(story: Story, drawn: int) -> Markup:
    if not story.trials:
        return sections.section("trials", "Trials", sections.paragraph("None yet.", kind="empty"))
    return sections.section(
        "trials",
        "Trials",
        _thinning_note(len(story.trials), drawn),
        element("div", id="trials-tools", class_="tools"),
        element(
            "div", id="trials-table", class_="grid", tabindex="0", role="region",
            aria_label="All trials",
        ),
        element("div", id="trial-detail", class_="detail", aria_live="polite"),
    )  # fmt: skip


def _thinning_note(trials: int, drawn: int) -> Markup:
    if drawn == trials:
        return Markup("")
    return sections.paragraph(
        f"Pictures and table show {drawn:,} of {trials:,} trials: the best, those that improved on "
        "all before them, those on the front, the members of the model, and a random sample."
    )


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


@cache
def _style() -> Markup:
    return Markup(_asset("page.css"))


@cache
def _script(*, with_curves: bool) -> Markup:
    """Return all scripts inside one function, so that none of their names is global.

    Comments and indents are removed. They are for readers of the source.
    """
    names = [name for name in SCRIPTS if with_curves or name != OF_CURVES]
    lines = (line.strip() for name in names for line in _asset(name).splitlines())
    body = "\n".join(line for line in lines if line and not line.startswith("//"))
    return Markup(f'(() => {{\n"use strict";\n{body}\n}})();\n')


def _asset(name: str) -> str:
    return (files("foretune.report") / "assets" / name).read_text(encoding="utf-8")
