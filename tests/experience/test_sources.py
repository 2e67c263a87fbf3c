from itertools import permutations

import pytest

from foretune.experience import Experience, Metric, Status
from foretune.experience.alignment.carry_over import carry_over, join_carried
from foretune.experience.source_merge import SourcedExperience, keep_distinct_tasks
from foretune.space import Space

SPACE = Space.of({"x": (0.0, 1.0), "c": ["a", (1, 2)]})


def part(source, tasks, space=SPACE, **notes):
    """tasks: the runs of each, `x` and a loss; None where it failed."""
    runs = [(task, x, loss) for task, of in tasks.items() for x, loss in of]
    names = list(tasks)
    extra = {"c": (1, 2)} if "c" in space.names else {}
    known = Experience.build(
        space,
        [Metric("loss")],
        names,
        [names.index(task) for task, _, _ in runs],
        space.encode([{"x": x, **extra} for _, x, _ in runs], fill_defaults=True),
        range(len(runs)),
        [float("nan") if loss is None else loss for _, _, loss in runs],
        status=[Status.FAILED if loss is None else Status.DONE for _, _, loss in runs],
        **notes,
    )
    return SourcedExperience(source, known)


def told(parts):
    """The runs of each task."""
    return {
        name: [config["x"] for config in each.experience.task(name).configs.dicts()]
        for each in parts
        for name in each.experience.tasks
    }


ONE = [(0.1, 1.0), (0.2, 2.0), (0.3, None)]


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (ONE, ONE, {"t": [0.1, 0.2, 0.3]}),
        (ONE, ONE[:2], {"t": [0.1, 0.2, 0.3]}),
        (ONE[1:], ONE, {"t": [0.1, 0.2, 0.3]}),
        (ONE, [*ONE[:2], (0.4, 4.0)], {"t": [0.1, 0.2, 0.3], "t (b)": [0.1, 0.2, 0.4]}),
        (ONE, [(0.1, 9.0)], {"t": [0.1, 0.2, 0.3], "t (b)": [0.1]}),
        (ONE, [(0.5, 1.0)], {"t": [0.1, 0.2, 0.3], "t (b)": [0.5]}),
        (ONE[:2], [(0.1, 1.0), (0.2, None)], {"t": [0.1, 0.2], "t (b)": [0.1, 0.2]}),
    ],
)
def test_tasks_of_one_name_are_the_same_where_one_has_all_runs_of_the_other(a, b, found):
    for parts in permutations([part("a", {"t": a}), part("b", {"t": b})]):
        assert told(keep_distinct_tasks(parts)) == found


def test_extra_records_of_one_side_keep_a_task_the_same():
    wider = Space.of({"x": (0.0, 2.0), "new": 1})
    for parts in permutations([part("a", {"t": ONE}), part("b", {"t": ONE[:2]}, wider)]):
        assert told(keep_distinct_tasks(parts)) == {"t": [0.1, 0.2, 0.3]}
    alien = Space.of({"x2": (0.0, 1.0)})
    other = Experience.build(
        alien, [Metric("loss")], ["t"], [0], alien.encode([{"x2": 0.1}]), [0], [1.0]
    )
    assert len(keep_distinct_tasks([part("a", {"t": ONE}), SourcedExperience("b", other)])) == 2


def test_the_order_of_sources_does_not_matter():
    parts = [
        part("a", {"t": ONE[:2], "u": ONE}),
        part("b", {"t": ONE}),
        part("c", {"t": [(0.9, 9.0)]}),
        part("d", {"v": ONE}),
    ]
    for each in permutations(parts):
        found = keep_distinct_tasks(each)
        assert [(one.source, one.experience.tasks) for one in found] == [
            ("a", ("u",)),
            ("b", ("t",)),
            ("c", ("t (c)",)),
            ("d", ("v",)),
        ]


def test_notes_of_a_task_stay_with_its_name():
    notes = {
        "meta_features": {"t": {"rows": 3.0}, "u": {"rows": 4.0}},
        "splits": {"s": {"train": ("t",), "test": ("u",)}},
        "starts": {"t": {"first": [1]}},
    }
    parts = [part("a", {"t": [(0.9, 9.0)]}), part("b", {"t": ONE, "u": ONE}, **notes)]
    known = keep_distinct_tasks(parts)[1].experience
    assert known.tasks == ("t (b)", "u")
    assert known.meta_features == {"t (b)": {"rows": 3.0}, "u": {"rows": 4.0}}
    assert known.splits["s"]["train"] == ("t (b)",)
    assert known.starts == {"t (b)": {"first": (1,)}}


def test_splits_that_contradict_each_other_are_no_obstacle():
    splits = [{"s": {"train": ("t",)}}, {"s": {"test": ("u",)}}]
    parts = [part("a", {"t": ONE}, splits=splits[0]), part("b", {"u": ONE}, splits=splits[1])]
    found = join_carried([carry_over(each.experience, SPACE) for each in parts])
    assert found.experience.tasks == ("t", "u")


def test_one_stays_of_tasks_that_contain_each_other_in_a_circle():
    def recorded(names, rows):
        space = Space.of(dict.fromkeys(names, (0.0, 9.0)))
        configs = space.encode([dict(zip(names, row, strict=True)) for row in rows])
        losses = [[1.0]] * len(rows)
        return Experience.build(
            space, [Metric("loss")], ["t"], [0] * len(rows), configs, range(len(rows)), losses
        )

    parts = [
        SourcedExperience("a", recorded("xz", [(1.0, 1.0), (1.0, 2.0)])),
        SourcedExperience("b", recorded("xy", [(1.0, 1.0), (2.0, 1.0)])),
        SourcedExperience("c", recorded("yz", [(1.0, 1.0), (2.0, 1.0)])),
    ]
    assert keep_distinct_tasks(parts)
