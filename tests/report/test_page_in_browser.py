"""The report in a real browser; skipped where there is none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.report.page import write_page
from foretune.report.story import MapPoint, Story
from foretune.report.trial_curves import PastBand
from tests.report.stories import (
    FLAT,
    STAGED,
    hostile,
    several,
    some_trials,
    stopped_early,
    told,
)

MANY = 46_000
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs the package 'playwright'")
    found = os.environ.get("FORETUNE_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if found is None:
        pytest.skip("needs Chromium on the path, or its path in FORETUNE_CHROMIUM")
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=sandbox)
        yield opened
        opened.close()


class Visit:
    """One page in the browser, and everything that went wrong on it."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)  # a busy machine is no fault of the page
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.ready")
        self.address = path.as_uri()

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(text)

    def see_everything(self) -> None:
        """Scroll down to the end, so that every picture is drawn."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        for top in range(0, height, 400):
            self.page.evaluate(f"scrollTo({{top: {top}, behavior: 'instant'}})")
            self.page.wait_for_timeout(30)

    def column(self, place: int) -> list[str]:
        """The texts of a column of the table, as far as its rows are there."""
        cells = self.page.locator(f"#trials-table tr[data-place] td:nth-child({place})")
        return cells.all_inner_texts()

    def ink(self, selector: str) -> int:
        """How many pixels of a picture are not blank."""
        return self.page.evaluate(
            """(selector) => {
                const canvas = document.querySelector(selector);
                const { width, height } = canvas;
                const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
                return data.filter((value, index) => index % 4 === 3 && value).length;
            }""",
            selector,
        )


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Any]:
    opened: list[Visit] = []

    def open_story(story: Story, **options: Any) -> Visit:
        path = tmp_path / "report.html"
        write_page(story, path)
        opened.append(Visit(browser, path, **options))
        return opened[-1]

    yield open_story
    for one in opened:
        one.context.close()


def with_map() -> Story:
    points = [
        MapPoint(float(i), float(i % 3), ("tree", "line")[i % 2], i / 30, i) for i in range(30)
    ]
    return told(STAGED, 30, embedding=points)


def test_everything_is_drawn_without_faults_or_requests(visit: Any) -> None:
    seen = visit(with_map())
    seen.see_everything()
    for selector in ("#course-plot canvas", "#map-plot canvas", "#slices canvas"):
        assert seen.ink(selector) > 1000
    assert seen.faults == []
    assert seen.requests == [seen.address]


def test_hundreds_of_curves_are_drawn_and_can_be_chosen(visit: Any) -> None:
    band = PastBand([1, 9, 27], [0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [0.5, 0.6, 0.7], 40, 2)
    seen = visit(stopped_early(300, past_curves=band))
    seen.see_everything()
    picture = seen.page.locator("#learning-plot")
    everything = picture.screenshot()
    seen.page.locator("#learning-key select").first.select_option("ended")
    assert picture.screenshot() != everything
    canvas = seen.page.locator("#learning-plot canvas")
    seen.page.locator("#learning-key select").first.select_option("early")
    box = canvas.bounding_box()
    found = False
    for x in range(50, int(box["width"]), 40):
        canvas.hover(position={"x": x, "y": box["height"] / 2})
        found = found or "step" in (seen.page.locator("#tip").text_content() or "")
    assert found
    assert seen.faults == []


def test_a_front_is_drawn_and_a_metric_that_is_too_large_is_not(visit: Any) -> None:
    near = [(2.0 + 0.1 * i, 2.0 - 0.1 * i, 1e301) for i in range(10)]
    seen = visit(several([*near, (1.0, 500.0, 1e301), (0.5, 600.0, 1e301)]))
    seen.see_everything()
    seen.page.locator("#course-key select").first.select_option(label="c")
    assert seen.ink("#front-plot canvas") > 1000
    assert seen.faults == []


def test_hostile_texts_do_nothing(visit: Any) -> None:
    story = hostile()
    seen = visit(story)
    seen.see_everything()
    seen.page.locator("#trials-table tr[data-place]").first.click()
    seen.page.locator("#course-plot canvas").hover(position={"x": 300, "y": 150})
    assert seen.page.title() == f"{story.title} - Foretune report"
    assert seen.page.locator("img").count() == 0
    assert story.title in seen.page.locator("#trial-detail").inner_text()
    assert seen.faults == []
    assert seen.requests == [seen.address]


def test_headings_sort_by_click_and_by_key(visit: Any) -> None:
    story = told(FLAT, 12)
    seen = visit(story)
    scores = [trial.values["score"] for trial in story.trials]
    assert [float(text) for text in seen.column(2)] == sorted(scores, reverse=True)
    heading = seen.page.locator("#trials-table th", has_text="score")
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in seen.column(2)] == sorted(scores)
    seen.page.locator("#trials-table th button", has_text="trial").focus()
    seen.page.keyboard.press("Enter")
    assert [int(text) for text in seen.column(1)] == list(range(12))


def test_unknown_scores_sort_last_both_ways(visit: Any) -> None:
    trials = some_trials(FLAT, 4)
    trials[1] = Trial(1, trials[1].config, Status.FAILED, {}, 1.0, "no memory")
    seen = visit(told(FLAT, trials=trials))
    assert seen.column(1)[-1] == "1"
    seen.page.locator("#trials-table th button", has_text="score").click()
    assert seen.column(1)[-1] == "1"


def test_words_filter_the_table(visit: Any) -> None:
    story = told(STAGED, 30)
    seen = visit(story)
    wanted = [t for t in story.trials if t.config["model"] == "tree"]
    seen.page.locator("#trials-tools input").fill("tree")
    count = f"{len(wanted)} of 30 trials"
    seen.page.wait_for_function(
        "(count) => document.querySelector('#trials-tools .count').textContent === count", arg=count
    )
    assert sorted(map(int, seen.column(1))) == [trial.number for trial in wanted]


def test_arrow_keys_show_the_details_of_a_trial(visit: Any) -> None:
    story = told(FLAT, 5)
    seen = visit(story)
    seen.page.locator("#trials-table").focus()
    seen.page.keyboard.press("ArrowDown")
    assert f"Trial {story.best}" in seen.page.locator("#trial-detail").inner_text()


@pytest.mark.parametrize("story", ["mapped", "hostile", "few"])
def test_a_phone_needs_no_sideways_scrolling(visit: Any, story: str) -> None:
    stories = {"mapped": with_map, "hostile": hostile, "few": lambda: told(FLAT, 1)}
    seen = visit(stories[story](), viewport={"width": 360, "height": 740})
    seen.see_everything()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_colours_follow_the_reader(visit: Any) -> None:
    seen = visit(told(FLAT, 12), color_scheme="light")
    shade = "getComputedStyle(document.body).backgroundColor"
    light = seen.page.evaluate(shade)
    before = seen.page.locator("#course-plot").screenshot()
    seen.page.emulate_media(color_scheme="dark")
    assert seen.page.evaluate(shade) != light
    assert seen.page.locator("#course-plot").screenshot() != before


def test_failed_runs_and_empty_runs_open(visit: Any) -> None:
    failed = [Trial(t.number, t.config, Status.FAILED, {}, 1.0) for t in some_trials(FLAT, 3)]
    empty = {"best": None, "pipeline": (), "expected_random": None}
    assert visit(told(FLAT, trials=failed, **empty)).faults == []
    assert visit(Story("t", FLAT, told(FLAT, 1).metrics, [])).faults == []


def test_it_prints(visit: Any) -> None:
    seen = visit(with_map(), color_scheme="dark")
    assert seen.page.pdf().startswith(b"%PDF")
    assert seen.page.evaluate("document.documentElement.className") == ""
    assert seen.faults == []


def test_many_trials_open_and_sort(visit: Any, capsys: pytest.CaptureFixture[str]) -> None:
    seen = visit(told(FLAT, MANY))
    ready = seen.page.evaluate("performance.getEntriesByName('foretune-ready')[0].startTime")
    with capsys.disabled():
        print(f"\nthe report of {MANY:,} trials is ready after {ready:.0f} ms")
    assert seen.page.locator("#trials-table tr[data-place]").count() < 100
    seen.page.locator("#trials-table th button", has_text="trial").click()
    assert seen.column(1)[0] == "0"
    seen.page.evaluate("document.getElementById('trials-table').scrollTop = 1e9")
    rows = int(seen.page.locator("#trials-table table").get_attribute("aria-rowcount"))
    assert 1_000 < rows < MANY  # a page of very many trials shows a part of them
    seen.page.wait_for_selector(f"#trials-table tr[data-place='{rows - 2}']")
    assert seen.faults == []
