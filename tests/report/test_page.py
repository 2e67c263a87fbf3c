import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.experience import Metric, Status
from foretune.experience.trial import Trial
from foretune.report.colours import OTHER, colour_key, colours_of
from foretune.report.headline import headline
from foretune.report.markup import Markup, element, join_markup
from foretune.report.page import page, write_page
from foretune.report.payload import in_script
from foretune.report.sections import setting_text
from foretune.report.story import ColumnLoss, MapPoint, Step, StorySource
from foretune.report.wording import duration_text, number_text
from foretune.space import Space
from tests.refusals import refuses
from tests.report.stories import FLAT, HOSTILE, SCORE, STAGED, hostile, several, some_trials, told


class Reader(HTMLParser):
    """Collects the elements of a page, and the text of scripts and of everything else."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.code: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.code.append((self.open[-1], data))
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if attributes.get("id")]

    @property
    def data(self):
        return json.loads(next(code for tag, code in self.code if tag == "script"))


def read(story) -> Reader:
    return Reader(page(story))


FULL = {
    "test_score": 0.75,
    "when": "today",
    "command": "foretune fit table.csv --target y",
    "facts": [("rows", "150")],
    "assumptions": ["'id' is no feature"],
    "ensemble": [(0.75, 3), (0.25, 1)],
    "without_columns": 0.125,
    "columns": [ColumnLoss("age", 0.25, True), ColumnLoss("town", 0.01, False)],
    "transferred": [StorySource("shipped", 70, 14000, "public tables")],
    "advice": ["The first five were a portfolio."],
    "embedding": [MapPoint(0.0, 1.0, "tree", 0.5, 1), MapPoint(1.0, 0.0, "line")],
    "timings": [("trials", 61.0)],
    "versions": {"foretune": "0.1.0"},
    "next_steps": [("Predict", "foretune predict model.skops new.csv")],
}


def test_a_full_story_has_all_its_parts():
    found = read(told(**FULL))
    parts = ["course", "pipeline", "next", "columns", "importance", "map", "trials"]
    parts += ["experience", "data", "run"]
    assert [key for key in found.ids if key in parts] == parts
    assert len(set(found.ids)) == len(found.ids)
    assert not found.open
    assert "Without columns 0.125" in found.text
    for text in ("Test score 0.75", "150", "'id' is no feature", "14,000", "61 s", "0.1.0"):
        assert text in found.text


def test_empty_columns_are_left_out():
    found = read(told(FLAT))
    assert not {"data", "run", "next", "columns", "map", "front"} & set(found.ids)
    assert "started from nothing" in found.text


def test_headline_tells_what_was_found():
    trials = some_trials(STAGED, 4)
    config = {"scaler": "none", "model": "tree", "model:tree:depth": 4}
    trials[2] = Trial(2, config, Status.DONE, {"score": 1.25}, 1.5)
    story = told(trials=trials, best=2, test_score=0.5)
    found = read(story)
    assert "The best of 4 trials reached score 1.25 with tree." in found.text
    assert "the model scores 0.5." in found.text


def test_a_substitute_of_the_best_trial_is_not_called_the_best():
    columns = [ColumnLoss("c", 1.0, True)]
    found = read(told(trials=some_trials(STAGED, 4), best=2, stands_in=True, columns=columns))
    assert "The best usable of 4 trials reached score" in found.text
    assert "Best usable score" in found.text
    assert "The best usable pipeline (trial 2)" in found.text
    assert "of the best usable pipeline gets" in found.text


def test_a_blend_is_told_of_with_its_score_and_its_members():
    trials = some_trials(STAGED, 4)
    story = told(trials=trials, best=2, ensemble=[(0.75, 2), (0.25, 1)], blended=1.5)
    found = read(story)
    assert "The model blends 2 of them, which reach 1.5 together, on the rows that" in found.text
    for number, share in ((2, "75%"), (1, "25%")):
        assert f"trial {number}, {trials[number].config['model']} {share}" in found.text
    assert "blends" not in read(told(trials=trials, best=2)).text


def test_columns_that_count_are_told_of():
    columns = [ColumnLoss(f"c{i}", 1.0 / (i + 1), i < 14) for i in range(20)]
    found = read(told(columns=columns))
    assert "Which columns count" in found.text
    for text in (
        "c0 1",
        "c1 0.5",
        "c11 0.08333",
        "8 columns with smaller or unsure effects left out.",
    ):
        assert text in found.text
    assert "c12" not in found.text
    unsure = read(told(columns=columns[14:]))
    assert "No column has an effect beyond chance." in unsure.text
    assert "c14" not in unsure.text


RICH_SCALER = Space.of(
    {
        "scaler": {"none": {}, "clip": {"low": (0.0, 1.0), "high": (1.0, 2.0)}},
        "model": {"tree": {"depth": (1, 9)}, "line": {}},
    },
    stages=("scaler", "model"),
)
"""Here, the scaler has more to set than the model."""


@pytest.mark.parametrize(
    "space",
    [
        RICH_SCALER,
        Space.of({"scaler": {"none": {}, "clip": {"low": (0.0, 1.0)}}, "model": "tree"}),
    ],
)
def test_pipelines_are_named_by_the_choice_that_is_told(space):
    trials = some_trials(space, 6)
    names = [trial.config["model"] for trial in trials]
    found = read(
        told(space, trials=trials, best=2, ensemble=[(0.75, 2), (0.25, 1)], choice="model")
    )
    assert f" with {names[2]}." in found.text
    for number in (1, 2):
        assert f"trial {number}, {names[number]} " in found.text
    assert found.data["algorithm"] == space.names.index("model")
    assert {name for name, _ in found.data["keys"]["trials"]} == set(names)


def test_random_search_is_told_of():
    expected = [0.1, 0.2, 5.0]
    assert "about 3 trials" in read(told(n=3, expected_random=expected)).text
    assert "more than 2 trials" in read(told(n=3, expected_random=expected[:2])).text


@pytest.mark.parametrize("n", [1, 2])
def test_few_trials_make_a_page(n):
    found = read(told(FLAT, n))
    assert "It takes 10 successful trials" in found.text
    assert len(found.data["status"]) == n


def test_no_trial_at_all():
    story = told(FLAT, n=1)
    found = read(type(story)("t", FLAT, [SCORE], []))
    assert "No trial has begun yet." in found.text
    assert "course" not in found.ids


def test_all_failed_names_the_reason():
    trials = [Trial(i, t.config, Status.FAILED, {}, math.nan, "boom") for i, t in
              enumerate(some_trials(FLAT, 12))]  # fmt: skip
    found = read(told(FLAT, trials=trials, best=None, pipeline=(), expected_random=None))
    assert "None of 12 trials succeeded. Most often (12 times): boom" in found.text
    assert found.data["status"] == "1" * 12


def test_a_reason_that_came_once_is_said_so():
    trial = Trial(0, some_trials(FLAT, 1)[0].config, Status.FAILED, {}, math.nan, "boom")
    found = read(told(FLAT, trials=[trial], best=None, pipeline=(), expected_random=None))
    assert "None of 1 trial succeeded. Most often (once): boom" in found.text


def test_an_objective_that_was_not_measured_is_never_the_best():
    losses = [(math.nan, 3.0), (2.0, math.inf), (1.0, -math.inf)]
    trials = [
        Trial(i, t.config, Status.DONE, {"a": a, "b": b}, 1.0)
        for i, (t, (a, b)) in enumerate(zip(some_trials(FLAT, 3), losses, strict=True))
    ]
    story = told(FLAT, trials=trials, metrics=[Metric("a"), Metric("b")], objectives=2,
                 best=None, pipeline=(), expected_random=None)  # fmt: skip
    tiles = str(headline(story))
    assert "<dt>Best a</dt><dd>1</dd>" in tiles
    assert "<dt>Best b</dt><dd>3</dd>" in tiles


def test_running_trials_have_no_value():
    trials = some_trials(FLAT, 3)
    trials.append(Trial(3, trials[0].config, Status.RUNNING, {}, math.nan))
    found = read(told(FLAT, trials=trials))
    assert "1 running" in found.text
    assert found.data["status"] == "0004"
    assert found.data["metrics"][0]["values"][3] is None


def test_two_objectives_show_their_front():
    found = read(several([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0), (3.0, 3.0)]))
    assert "4 trials looked for a and b at once." in found.text
    assert found.data["front"] == [0, 1, 2]
    assert "3 trials cannot be improved in one without losing in the other" in found.text


def test_the_picture_of_a_front_holds_its_ends_though_they_are_outliers():
    near = [(2.0 + 0.1 * i, 2.0 - 0.1 * i) for i in range(10)]
    found = read(several([*near, (1.0, 500.0), (-60.0, 600.0), (900.0, 900.0)]))
    assert found.data["front"] == [11, 10, *range(10)]
    assert found.data["metrics"][1]["high"] < 3.0  # elsewhere both would flatten the others
    across, up = found.data["frontRanges"]
    assert across["low"] <= -60.0
    assert 2.9 <= across["high"] < 900.0
    assert up["low"] <= 1.1
    assert 600.0 <= up["high"] < 900.0


def test_trials_unbeaten_in_all_three_objectives_are_counted():
    found = read(several([(1.0, 1.0, 3.0), (2.0, 2.0, 2.0), (3.0, 3.0, 1.0), (3.0, 3.0, 3.0)]))
    assert found.data["front"] == [0]  # what the line joins
    assert "Of all 3 metrics together, 3 trials cannot be improved in one" in found.text
    assert "of these two alone, 1; the line joins them." in found.text


def decoded(data, index: int) -> list[object]:
    """One hyperparameter of all trials, as the page's script reads it."""
    parameter = data["parameters"][index]
    rows = np.cumsum(parameter["rows"]) if parameter["rows"] else range(len(data["status"]))
    column: list[object] = [None] * len(data["status"])
    for row, value in zip(rows, parameter["values"], strict=True):
        column[row] = parameter["choices"][value] if parameter["choices"] else value
    return column


def test_columns_hold_the_configurations():
    story = told(STAGED, 40)
    data = read(story).data
    for index, name in enumerate(STAGED.names):
        given = [trial.config.get(name) for trial in story.trials]
        assert decoded(data, index) == [
            pytest.approx(value, rel=1e-5) if isinstance(value, float) else value for value in given
        ]


def test_stages_come_in_the_order_of_the_pipeline():
    pipeline = [Step("scaler", "none"), Step("model", "tree")]
    data = read(told(STAGED, pipeline=pipeline)).data
    names = [data["parameters"][index]["name"] for index in data["columns"][:2]]
    assert names == ["scaler", "model"]
    assert data["parameters"][data["algorithm"]]["choices"]


def test_numbers_that_do_not_count_up_are_kept():
    trials = [Trial(7, t.config, t.status, t.values, 1.0) for t in some_trials(FLAT, 1)]
    data = read(told(FLAT, trials=trials)).data
    assert (data["numbers"], data["best"]) == ([7], 0)


def test_no_text_of_a_user_becomes_markup():
    found = read(hostile())
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert "img" not in {tag for tag, _ in found.elements}
    assert found.text.count(HOSTILE) >= 15
    assert found.data["metrics"][0]["name"] == HOSTILE
    assert found.data["parameters"][0]["choices"] == ["plain", HOSTILE]


def test_the_page_permits_nothing_but_its_own_code():
    text = page(hostile())
    found = Reader(text)
    policy = next(
        attributes["content"] for _, attributes in found.elements if "http-equiv" in attributes
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    style = next(code for tag, code in found.code if tag == "style")
    script = [code for tag, code in found.code if tag == "script"][-1]
    for code in (style, script):
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert not {"src", "href"} & set(attributes)
    assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacent|document\.write", text)


def test_the_script_stays_small():
    *_, script = (code for tag, code in read(told()).code if tag == "script")
    assert len(script.encode()) < 25 * 1024


def test_odd_characters_survive():
    found = read(told(FLAT, title="tab\udce9le\u2028\x00 été 数据"))
    assert "été 数据" in found.text


def test_the_same_story_gives_the_same_page():
    assert page(told(**FULL)) == page(told(**FULL))


def test_a_page_is_written_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "report.html"
    write_page(told(FLAT, 3), path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", _no_space)
    with refuses("unwritable-report"):
        write_page(told(FLAT, 4), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_missing_folder_is_named(tmp_path: Path):
    path = tmp_path / "missing" / "report.html"
    with refuses("unwritable-report"):
        write_page(told(FLAT, 2), path)


def _no_space(*_: object) -> None:
    raise OSError("no space left on device")


def test_elements_escape_text_and_attributes():
    made = element("p", "<b>", Markup("<i></i>"), ["a", "&"], class_='"x"', hidden=True, lang=False)
    assert made == '<p class="&quot;x&quot;" hidden>&lt;b&gt;<i></i>a&amp;</p>'
    assert join_markup("'") == "&#x27;"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.87741, "0.8774"), (12.0, "12"), (123456.7, "123,457"), (2e-7, "2.000e-07"),
     (math.nan, "-"), (-math.inf, "-∞"), (0.0, "0"), (3e9, "3.000e+09")],
)  # fmt: skip
def test_numbers_for_people(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0421, "42 ms"), (3.14159, "3.14 s"), (61.0, "61 s"), (150.0, "2 min 30 s"),
     (7260.0, "2 h 1 min"), (math.nan, "-")],
)  # fmt: skip
def test_durations_for_people(seconds, text):
    assert duration_text(seconds) == text


def test_the_most_frequent_algorithms_get_colours():
    counts = np.array([1, 9, 8, 7, 6, 5, 4, 3, 1])
    colours = colours_of(counts.astype(float))
    assert colours == [OTHER, 0, 1, 2, 3, 4, 5, 6, OTHER]
    names = list("abcdefghi")
    key = colour_key(names, colours, counts)
    assert key == [*zip("bcdefgh", range(7), strict=True), ("2 others", OTHER)]
    assert colour_key(names, colours, counts * (np.arange(9) < 1)) == [("a", OTHER)]


def test_a_space_of_one_constant_makes_a_page():
    space = Space.of({"only": ["one"], "x": (0.0, 1.0)})
    assert "trials" in read(told(space, 12)).ids


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_data_in_a_script_cannot_end_it(text: str, number: float):
    written = in_script({text: [text, number]})
    assert not set("<>&") & set(written)
    assert written.isascii()
    assert json.loads(written) == {text: [text, number]}


def test_choices_that_look_alike_keep_their_places():
    space = Space.of({"model": {1: {"a": (0.0, 1.0)}, "1": {"b": (0.0, 1.0)}}, "x": (0.0, 1.0)})
    story = told(space, 12, embedding=[MapPoint(0.0, 0.0, "1"), MapPoint(1.0, 1.0, "other")])
    data = read(story).data
    assert data["parameters"][data["algorithm"]]["choices"] == ["1", "1"]
    assert len(data["colours"]) == 3
    assert data["map"]["algorithms"] == [0, 2]


@pytest.mark.parametrize("odd", [np.array([0.5, 0.6, 0.7]), [0.5, np.nan, 0.7], np.empty(0), None])
def test_random_search_may_be_known_in_part(odd):
    known = 0 if odd is None else int(np.argmin(np.isfinite([*odd, np.nan])))
    assert len(read(told(FLAT, 5, expected_random=odd)).data["random"]) == known


def test_values_without_bound_are_unknown():
    trials = some_trials(FLAT, 3)
    trials[0] = Trial(0, trials[0].config, Status.DONE, {"score": -1e308}, 1.0)
    trials[1] = Trial(1, trials[1].config, Status.DONE, {"score": np.inf}, 1.0)
    values = read(told(FLAT, trials=trials, best=2)).data["metrics"][0]["values"]
    assert values[:2] == [None, None]


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "True"), (np.float64(0.5), "0.5"), (np.int64(3), "3"), (None, "None"), ("<a>", "<a>")],
)
def test_settings_for_people(value, text):
    assert setting_text(value) == text
