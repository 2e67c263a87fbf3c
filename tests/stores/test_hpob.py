import json

import pytest

from foretune.errors import ExperienceError
from foretune_lab.archives import hpob
from tests.refusals import refuses


def dataset(*rows):
    """Rows of (configuration, accuracy)."""
    return {"X": [list(x) for x, _ in rows], "y": [[y] for _, y in rows]}


FILES = {
    "meta-train-dataset.json": {
        "5860": {"3": dataset(([0.0, 1.0], 0.5), ([0.25, 0.5], 0.75))},
        "4796": {"3": dataset(([0.5], 0.1))},
    },
    "meta-validation-dataset.json": {"5860": {"12": dataset(([0.0, 1.0], 0.25))}},
    "meta-test-dataset.json": {
        "5860": {"31": dataset(([1.0, 1.0], 0.9), ([0.0, 1.0], 0.8), ([0.125, 0.0], 0.7))}
    },
    "bo-initializations.json": {"5860": {"31": {"test0": [2, 0], "test1": [1]}}},
}


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(json.dumps(content))
    return tmp_path


def test_reads_one_search_space(folder):
    experience = hpob.read(folder, space_id="5860")
    assert experience.tasks == ("3", "12", "31")
    records = experience.task("31")
    assert records.configs.dicts() == [
        {"x0": 1.0, "x1": 1.0},
        {"x0": 0.0, "x1": 1.0},
        {"x0": 0.125, "x1": 0.0},
    ]
    assert records.losses[:, 0].tolist() == [-0.9, -0.8, -0.7]
    assert dict(experience.splits["hpob"]) == {
        "train": ("3",),
        "validation": ("12",),
        "test": ("31",),
    }


def test_starts_name_the_configurations_of_their_dataset(folder):
    """Configurations that datasets share are merged, and the starts follow them."""
    experience = hpob.read(folder, space_id="5860")
    assert len(experience.configs) == 4
    named = {
        seed: experience.configs.take(list(rows)).dicts()
        for seed, rows in experience.starts["31"].items()
    }
    assert named == {
        "test0": [{"x0": 0.125, "x1": 0.0}, {"x0": 1.0, "x1": 1.0}],
        "test1": [{"x0": 0.0, "x1": 1.0}],
    }


def test_a_single_search_space_needs_no_name(folder):
    (folder / "meta-train-dataset.json").unlink()
    assert hpob.read(folder).tasks == ("12", "31")


def test_several_search_spaces_must_be_chosen_from(folder):
    with refuses("choose-search-space", value=("4796", "5860")):
        hpob.read(folder)
    with refuses("unknown-search-space", value="1"):
        hpob.read(folder, space_id="1")


def test_numbers_that_rounding_pushed_out_are_clipped(tmp_path):
    data = {"1": {"a": dataset(([1.0000001, -1e-9], 0.5))}}
    (tmp_path / "meta-test-dataset.json").write_text(json.dumps(data))
    assert hpob.read(tmp_path).task("a").configs.dicts() == [{"x0": 1.0, "x1": 0.0}]


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ({"X": [[0.5]]}, "no-x-and-y"),
        ({"X": [[0.5], [0.1]], "y": [[1.0]]}, "accuracy-count"),
        ({"X": [0.5], "y": [[1.0]]}, "accuracy-count"),
        ({"X": [[2.0]], "y": [[1.0]]}, "outside-unit-cube"),
        ({"X": [["a"]], "y": [[1.0]]}, "no-x-and-y"),
    ],
)
def test_refuses_other_tables(tmp_path, table, rule):
    (tmp_path / "meta-test-dataset.json").write_text(json.dumps({"1": {"a": table}}))
    with refuses(rule):
        hpob.read(tmp_path)


def test_refuses_datasets_of_different_lengths(tmp_path):
    data = {"1": {"a": dataset(([0.5], 1.0)), "b": dataset(([0.5, 0.5], 1.0))}}
    (tmp_path / "meta-test-dataset.json").write_text(json.dumps(data))
    with refuses("uneven-datasets", field="1"):
        hpob.read(tmp_path)


@pytest.mark.parametrize(("content", "rule"), [("{", "not-json"), ("[]", "no-search-spaces")])
def test_refuses_other_files(tmp_path, content, rule):
    (tmp_path / "meta-test-dataset.json").write_text(content)
    with refuses(rule):
        hpob.read(tmp_path)


def test_refuses_a_folder_without_its_files(tmp_path):
    with refuses("missing-member", field="meta-test-dataset.json"):
        hpob.read(tmp_path)


@pytest.mark.parametrize("design", [[3], [-1], ["first"], 2, None])
def test_refuses_initial_designs_that_name_no_rows_of_their_dataset(folder, design):
    content = {"5860": {"31": {"test0": design}}}
    (folder / "bo-initializations.json").write_text(json.dumps(content))
    with pytest.raises(ExperienceError):
        hpob.read(folder, space_id="5860")
