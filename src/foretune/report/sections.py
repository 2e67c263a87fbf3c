"""The parts of a report that need no script: sentences, tables, the pipeline as a flow."""

import re
from collections.abc import Sequence
from numbers import Real
from typing import Any

from foretune.experience import Direction
from foretune.report.importance import Importance
from foretune.report.markup import Markup, element, join_markup
from foretune.report.story import Step, Story, StorySource
from foretune.report.wording import count_text, duration_text, number_text, shorten

NOTHING = frozenset({"none", "passthrough", "drop"})
"""Algorithms that leave the data unchanged. They are drawn faintly."""
MOST_EFFECTS = 12
LONGEST_COLUMN = 60
LEAST_EFFECT = 0.005
"""Smaller effects would be shown as 0 %, so they are left out."""
WEAK_FOREST = 0.2
"""Below this share of explained variation, effects are only hints."""


def section(key: str, title: str, *content: Markup | str, wide: bool = True) -> Markup:
    """Return a titled part of the page, which links can point to."""
    heading = element("h2", title, id=f"{key}-title")
    kind = "card wide" if wide else "card"
    return element(
        "section", heading, *content, id=key, class_=kind, aria_labelledby=f"{key}-title"
    )


def paragraph(*content: Markup | str, kind: str = "note") -> Markup:
    """Return a paragraph of text."""
    return element("p", *content, class_=kind)


def pairs(items: Sequence[tuple[str, str]]) -> Markup:
    """Return names and texts side by side."""
    rows = [element("div", element("dt", name), element("dd", text)) for name, text in items]
    return element("dl", rows, class_="pairs")


def bullets(texts: Sequence[str]) -> Markup:
    """Return a plain list."""
    return element("ul", [element("li", text) for text in texts], class_="plain")


def canvas(key: str, label: str, kind: str = "plot") -> Markup:
    """Return a place for a picture that the script draws. Screen readers read the label."""
    picture = element("canvas", role="img", aria_label=label)
    return element("div", picture, id=key, class_=kind)


def best_pipeline(story: Story) -> Markup:
    """Return the best trial's pipeline as boxes, through which data flow, and the blend."""
    parts: list[Markup] = []
    if len(story.pipeline) == 1 and not story.pipeline[0].algorithm:
        parts.append(element("div", _settings(story.pipeline[0]), class_="detail"))
    elif story.pipeline:
        parts.append(element("ol", [_box(step) for step in story.pipeline], class_="flow"))
    else:
        parts.append(paragraph("There is no best configuration yet.", kind="empty"))
    if story.ensemble:
        parts.append(_ensemble(story))
    return section("pipeline", _pipeline_title(story), *parts)


def _pipeline_title(story: Story) -> str:
    many = len(story.pipeline) > 1
    what = "pipeline" if many else "configuration"
    which = "" if story.best is None else f" (trial {story.best})"
    return f"The {story.superlative} {what}{which}"


def _settings(step: Step) -> Markup:
    rows = [
        element("div", element("dt", name), element("dd", setting_text(value)))
        for name, value in step.settings.items()
    ]
    return element("dl", rows)


def _box(step: Step) -> Markup:
    content = [element("span", step.name, class_="step")]
    if step.algorithm:
        content.append(element("strong", step.algorithm))
    if step.settings:
        content.append(_settings(step))
    kind = "faint" if step.algorithm.lower() in NOTHING else "box"
    return element("li", content, class_=kind)


def setting_text(value: Any) -> str:
    """Return a hyperparameter's value for people."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return number_text(float(value)) if is_number else str(value)


def _ensemble(story: Story) -> Markup:
    total = sum(weight for weight, _ in story.ensemble) or 1.0
    rows = [
        element(
            "tr",
            element("th", f"trial {number}{_trial_label(story, number)}", scope="row"),
            element("td", bar(weight / total)),
            element("td", f"{weight / total:.0%}", class_="number"),
        )
        for weight, number in sorted(story.ensemble, reverse=True)
    ]
    said = paragraph(
        f"The saved model blends {count_text(len(rows), 'pipeline')}; each has a say by its weight."
    )
    return join_markup(said, element("table", element("tbody", rows), class_="bars"))


def _trial_label(story: Story, number: int) -> str:
    """Return what a trial chose, if that has a name."""
    chosen = story.label_of(number)
    return f", {chosen}" if chosen else ""


def bar(share: float) -> Markup:
    """Return a share between 0 and 1 as a bar. It is SVG because the page bans style attributes."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    return element(
        "svg",
        element("rect", class_="track", width="100%", height="100%", rx="3"),
        element("rect", class_="fill", width=width, height="100%", rx="3"),
        class_="bar",
        aria_hidden="true",
    )


def columns_that_count(story: Story) -> Markup:
    """Return which columns of the data the best pipeline uses most."""
    if not story.columns:
        return join_markup()
    said = (
        f"How much worse the {story.metric.name} of the {story.superlative} pipeline gets on "
        "rows that it has not learnt from, if the values of a column are shuffled. When columns "
        "carry the same information, each can look unimportant."
    )
    shown = [each for each in story.columns if each.is_sure][:MOST_EFFECTS]
    if not shown:
        rest = paragraph("No column has an effect beyond chance.", kind="empty")
        return section("columns", "Which columns count", paragraph(said), rest)
    rows = [
        element(
            "tr",
            element("th", shorten(each.column, LONGEST_COLUMN), scope="row"),
            element("td", bar(each.lost / shown[0].lost)),
            element("td", number_text(each.lost), class_="number"),
        )
        for each in shown
    ]
    parts = [paragraph(said), element("table", element("tbody", rows), class_="bars")]
    if left := len(story.columns) - len(shown):
        parts.append(
            paragraph(f"{count_text(left, 'column')} with smaller or unsure effects left out.")
        )
    return section("columns", "Which columns count", *parts)


def effects(story: Story, found: Importance) -> Markup:
    """Return what mattered: a bar for each hyperparameter, and room for the slices."""
    if found.reason:
        body = [paragraph(found.reason, kind="empty")]
    else:
        body = [paragraph(_effects_note(found)), _effects_table(found)]
    body += [
        element("h3", "Score by hyperparameter"),
        element("p", id="slices-note", class_="key"),
        element("div", id="slices", class_="slices"),
    ]
    which = f" for {story.metric.name}" if story.objectives > 1 else ""
    return section("importance", "Which hyperparameters mattered" + which, *body)


def _effects_note(found: Importance) -> str:
    said = (
        "The share of the differences among trials that a hyperparameter explains, alone and "
        "together with others, by a random forest of "
        f"{count_text(found.trials, 'trial')}. The forest predicts {found.explained:.0%} of the "
        "differences in rank between trials that it has not seen"
    )
    if found.explained < WEAK_FOREST:
        return said + ": too little to rely on, so take these bars as hints."
    return said + "."


def _effects_table(found: Importance) -> Markup:
    shown = [effect for effect in found.effects if effect.share >= LEAST_EFFECT][:MOST_EFFECTS]
    largest = found.effects[0].share or 1.0
    rows = [
        element(
            "tr",
            element("th", hyperparameter_label(effect.parameter), scope="row"),
            element("td", bar(effect.share / largest)),
            element("td", f"{effect.share:.0%}", class_="number"),
            element(
                "td",
                "" if effect.trials == found.trials else f"in {count_text(effect.trials, 'trial')}",
                class_="aside",
            ),
        )
        for effect in shown
    ]
    table = element("table", element("tbody", rows), class_="bars")
    left = len(found.effects) - len(rows)
    if not left:
        return table
    rest = f"{count_text(left, 'hyperparameter')} with smaller effects left out."
    return join_markup(table, paragraph(rest))


def hyperparameter_label(name: str) -> Markup:
    """Return a hyperparameter's name, after its stage and algorithm in small letters."""
    owner, _, own = name.rpartition(":")
    if not owner:
        return join_markup(name)
    return join_markup(element("small", owner.replace(":", " / ")), element("span", own))


def transfer_section(story: Story) -> Markup:
    """Return which experience the search started from, and how it was used."""
    parts: list[Markup] = []
    if story.transferred:
        head = [element("th", text, scope="col") for text in ("experience", "tasks", "trials", "")]
        rows = [_source_row(source) for source in story.transferred]
        parts.append(
            element(
                "div",
                element(
                    "table",
                    element("thead", element("tr", head)),
                    element("tbody", rows),
                    class_="sources",
                ),
                class_="scroll",
            )
        )
    else:
        parts.append(
            paragraph("This search started from nothing: no experience was used.", kind="empty")
        )
    if story.advice:
        parts.append(bullets(story.advice))
    return section("experience", "What was transferred, and from where", *parts)


def _source_row(source: StorySource) -> Markup:
    return element(
        "tr",
        element("th", source.name, scope="row"),
        element("td", f"{source.tasks:,}", class_="number"),
        element("td", f"{source.evaluations:,}", class_="number"),
        element("td", source.note),
    )


def data_facts(story: Story) -> Markup:
    """Return the data, and what was assumed about them."""
    parts = [pairs(story.facts)] if story.facts else []
    if story.assumptions:
        parts += [element("h3", "What was assumed"), bullets(story.assumptions)]
    return section("data", "The data", *parts, wide=False) if parts else join_markup()


def about(story: Story) -> Markup:
    """Return how long things took, and what is needed to repeat the run."""
    parts: list[Markup] = []
    if story.timings:
        total = sum(seconds for _, seconds in story.timings) or 1.0
        rows = [
            element(
                "tr",
                element("th", what, scope="row"),
                element("td", bar(seconds / total)),
                element("td", duration_text(seconds), class_="number"),
            )
            for what, seconds in story.timings
        ]
        parts.append(element("table", element("tbody", rows), class_="bars"))
    if story.command:
        parts += [element("h3", "The command"), code(story.command)]
    if story.versions:
        said = ", ".join(f"{name} {version}" for name, version in story.versions.items())
        parts += [element("h3", "Versions"), paragraph(said)]
    return section("run", "The run", *parts, wide=False) if parts else join_markup()


def next_steps(story: Story) -> Markup:
    """Return commands that use the result."""
    if not story.next_steps:
        return join_markup()
    steps = [
        element("div", element("h3", what), code(command)) for what, command in story.next_steps
    ]
    return section("next", "What to do next", *steps)


def code(text: str) -> Markup:
    """Return a command to be copied."""
    # Each word is an element, because lines would otherwise break inside "--option".
    words = [element("span", word) if word.strip() else word for word in re.split(r"(\s+)", text)]
    return element("pre", element("code", words), tabindex="0")


def better_text(direction: Direction) -> str:
    """Return in words which direction of a metric is better."""
    return "higher is better" if direction is Direction.MAX else "lower is better"
