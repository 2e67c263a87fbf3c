import numpy as np
import pytest

from foretune.experience import Experience, Metric, Split, find_splits
from foretune.space import Space
from foretune_lab.bench.plan import plan_held_out
from foretune_lab.bench.replay import replay
from foretune_lab.bench.starts import Start, beginnings, has_recorded_start, seed_on_task
from tests.refusals import refuses

SPACE = Space.of({"x": (0.0, 1.0)})
GRID = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
NAN = np.nan


def line(losses, starts=None):
    """Task -> losses at the points of GRID."""
    return Experience.from_matrix(
        SPACE,
        SPACE.encode([{"x": x} for x in GRID]),
        list(losses),
        [Metric("error")],
        {"error": np.array(list(losses.values()), dtype=float)},
        starts=starts,
    )


@pytest.mark.parametrize(
    ("text", "start", "shown"),
    [
        ("none", Start("none"), "none"),
        ("recorded", Start("recorded"), "recorded"),
        ("portfolio", Start("portfolio", 5), "portfolio:5"),
        ("portfolio:8", Start("portfolio", 8), "portfolio:8"),
        ("random:3", Start("random", 3), "random:3"),
    ],
)
def test_starts_are_called_by_name(text, start, shown):
    assert Start.parse(text) == start
    assert str(start) == shown


@pytest.mark.parametrize(
    "text", ["", "random", "random:0", "none:2", "recorded:1", "best", "random:x"]
)
def test_other_names_are_refused(text):
    with refuses("unknown-start", value=text):
        Start.parse(text)


def test_a_seed_uses_the_recorded_design_of_its_number():
    designs = {"test0": [0, 3], "test1": [5]}
    experience = line({"a": range(6), "b": range(6)}, {"a": designs})
    split = Split("s", ("b",), (), ("a",))
    assert beginnings(Start("recorded"), experience, split, [0, 1, 2, 5]) == {
        ("a", 0): (0, 3),
        ("a", 1): (5,),
        ("a", 2): (0, 3),
        ("a", 5): (5,),
    }


def test_a_recorded_design_holds_only_what_was_evaluated_on_the_task():
    experience = line(
        {"a": [1, 2, 3, NAN, NAN, 6], "b": range(6), "c": [NAN] * 4 + [1, 2]},
        {"a": {"test0": [0, 3]}, "c": {"test0": [0, 1]}},
    )
    assert [has_recorded_start(experience, task) for task in "abc"] == [True, False, False]
    split = Split("s", ("b",), (), ("a",))
    assert beginnings(Start("recorded"), experience, split, [0]) == {("a", 0): (0,)}


def test_a_seed_on_a_task_is_its_own_and_stays_as_it_was():
    seeds = {seed_on_task(seed, task) for seed in range(3) for task in ("a", "b")}
    assert len(seeds) == 6
    assert seed_on_task(0, "a") == 1159843927


def test_random_starts_differ_between_tasks_and_seeds_only():
    experience = line({task: range(6) for task in "abcdef"})
    together = Split("s", (), (), tuple("abcdef"))
    drawn = beginnings(Start("random", 4), experience, together, [0, 1])
    assert all(len(set(rows)) == 4 for rows in drawn.values())
    assert len(set(drawn.values())) > 6
    alone = beginnings(Start("random", 4), experience, Split("t", (), (), ("c",)), [1])
    assert alone == {("c", 1): drawn["c", 1]}
    assert len(beginnings(Start("random", 9), experience, together, [0])["a", 0]) == 6


def test_a_portfolio_comes_from_the_other_tasks():
    """Tasks b and c are best at 0.8 and at 0.2; task a's own optimum plays no part."""
    losses = {"a": [0, 9, 9, 9, 9, 9], "b": [8, 8, 8, 8, 1, 8], "c": [7, 2, 7, 7, 7, 7]}
    [split, *_] = find_splits(line(losses), "leave-one-out")
    begun = beginnings(Start("portfolio", 2), line(losses), split, [0, 1])
    assert begun["a", 0] == begun["a", 1]
    assert set(begun["a", 0]) == {1, 4}


def test_missing_records_of_a_task_are_replaced_by_the_nearest_free_one():
    losses = {"a": [5, NAN, 5, 5, NAN, 5], "b": [8, 8, 8, 8, 1, 8], "c": [7, 2, 7, 7, 7, 7]}
    [split, *_] = find_splits(line(losses), "leave-one-out")
    [rows] = set(beginnings(Start("portfolio", 2), line(losses), split, [0]).values())
    assert set(rows) <= {0, 2, 3, 5}
    assert len(set(rows)) == 2


@pytest.mark.parametrize(
    ("recorded", "rows"), [([5, NAN, NAN, NAN, NAN, 5], {0, 5}), ([5] + [NAN] * 5, {0})]
)
def test_no_configuration_stands_in_for_two(recorded, rows):
    """The first is nearest to both that are wanted."""
    losses = {"a": recorded, "b": [8, 8, 1, 8, 8, 8], "c": [7, 2, 7, 7, 7, 7]}
    [split, *_] = find_splits(line(losses), "leave-one-out")
    [found] = beginnings(Start("portfolio", 2), line(losses), split, [0]).values()
    assert len(found) == len(rows)
    assert set(found) == rows


def test_a_task_is_replayed_where_all_objectives_were_measured():
    values = {"error": np.ones((2, 6)), "size": np.array([[1.0] * 6, [NAN] * 6])}
    metrics = [Metric("error"), Metric("size")]
    configs = SPACE.encode([{"x": x} for x in GRID])
    experience = Experience.from_matrix(SPACE, configs, ["a", "b"], metrics, values)
    [split] = plan_held_out(experience, "leave-one-out", Start("none")).splits
    assert split.test == ("a",)


def test_a_part_of_the_tasks_is_drawn_at_random_and_always_the_same():
    experience = line({task: range(6) for task in "abcdefgh"})
    some, again = (
        [
            split.test[0]
            for split in plan_held_out(experience, "leave-one-out", Start("none"), limit=3).splits
        ]
        for _ in range(2)
    )
    assert some == again
    assert len(some) == 3
    assert some != ["a", "b", "c"]


def test_a_portfolio_needs_other_tasks():
    with refuses("no-past-tasks"):
        beginnings(
            Start("portfolio", 2), line({"a": range(6)}), Split("alone", (), (), ("a",)), [0]
        )


def test_tasks_without_a_recorded_design_are_left_out(tmp_path):
    experience = line({"a": range(6), "b": range(6)}, {"a": {"test0": [2, 4]}})
    results = replay(
        experience, ["random"], trials=3, seeds=2, start="recorded", out=tmp_path / "r.parquet"
    )
    assert results.runs == {("a", "random", 0), ("a", "random", 1)}
    assert results.rows.query("trial <= 2")["value"].tolist() == [2.0, 4.0] * 2


def test_a_portfolio_opens_every_method(tmp_path):
    losses = {"a": [0, 9, 9, 9, 9, 9], "b": [8, 8, 8, 8, 1, 8], "c": [7, 2, 7, 7, 7, 7]}
    out = tmp_path / "r.parquet"
    rows = replay(
        line(losses), ["random", "gp"], trials=3, seeds=1, start="portfolio:2", out=out
    ).rows
    opened = rows.query("task == 'a' and trial <= 2").groupby("method")["value"].apply(list)
    assert opened.to_dict() == {"random": [9.0, 9.0], "gp": [9.0, 9.0]}
