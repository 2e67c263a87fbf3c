"""An experience carries the curves of its evaluations through everything that is done with it."""

from pathlib import Path

import numpy as np
import pytest

from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.experience.curves import Curve, read_curve
from foretune.experience.data import ExperienceData
from foretune.experience.parquet_format import FileLimits
from foretune.experience.parquet_reader import read_experience
from foretune.experience.parquet_writer import write_experience
from foretune.space import Space
from tests.refusals import refuses

SPACE = Space.of({"lr": (1e-4, 1.0, "log"), "depth": (1, 8)})
METRICS = (Metric("loss"), Metric("accuracy", Direction.MAX))


def evaluation(task: str, lr: float, losses: list[float], *, stopped: bool = False) -> Evaluation:
    steps = [float(step) for step in range(1, len(losses) + 1)]
    accuracy = [1 - loss for loss in losses]
    curve = Curve(steps, {"loss": losses, "accuracy": accuracy}, [2 * step for step in steps])
    return Evaluation(
        task,
        {"lr": lr, "depth": 2},
        {"loss": losses[-1], "accuracy": accuracy[-1]},
        Status.STOPPED if stopped else Status.DONE,
        seconds=2.0 * len(losses),
        curve=curve if losses else None,
    )


PLAIN = Evaluation("b", {"lr": 0.5, "depth": 3}, {"loss": 0.7, "accuracy": 0.3})


@pytest.fixture
def past() -> Experience:
    first = PLAIN
    built = Experience.build(
        SPACE,
        METRICS,
        ["b"],
        [0],
        SPACE.encode([first.config]),
        [0],
        [[first.values["loss"], first.values["accuracy"]]],
    )
    return built.append(
        [
            evaluation("a", 0.1, [0.9, 0.5, 0.25]),
            evaluation("b", 0.2, [0.8, 0.6], stopped=True),
            evaluation("a", 0.3, [0.75]),
        ]
    )


def losses_of(experience: ExperienceData) -> dict[tuple[str, float], list[float]]:
    """{(task, lr): the losses at the steps}"""
    assert experience.curves is not None
    place = [metric.name for metric in experience.metrics].index("loss")
    lr = experience.space.names.index("lr")
    return {
        (
            experience.tasks[experience.task_index[row]],
            round(float(experience.configs.values[experience.config_index[row], lr]), 6),
        ): experience.curves.at_steps(row, place)[1].tolist()
        for row in range(len(experience))
    }


CURVES = {("b", 0.5): [], ("a", 0.1): [0.9, 0.5, 0.25], ("b", 0.2): [0.8, 0.6], ("a", 0.3): [0.75]}


def test_curves_follow_their_rows(past: Experience) -> None:
    assert losses_of(past) == CURVES
    assert past.largest_step("a") == 3
    assert past.largest_step("b") == 2
    assert len(past.task("a").curves or ()) == 2
    row = int(np.flatnonzero(past.curves.last_steps == 3)[0]) if past.curves else -1
    curve = read_curve(past.curves, row, ("loss", "accuracy")) if past.curves else None
    assert curve is not None
    assert curve.seconds == [2, 4, 6]
    assert curve.values["accuracy"] == [1 - 0.9, 0.5, 0.75]


def test_a_stopped_trial_has_a_curve_and_no_loss(past: Experience) -> None:
    stopped = past.status == Status.STOPPED
    assert stopped.sum() == 1
    assert np.isnan(past.losses[stopped]).all()
    assert past.values[stopped, 0] == 0.6
    assert not past.is_complete[stopped].any()
    assert past.is_complete.sum() == 3


@pytest.mark.parametrize("limits", [FileLimits(), FileLimits(configs_in_footer=8)])
def test_files_keep_them(past: Experience, tmp_path: Path, limits: FileLimits) -> None:
    write_experience(past, tmp_path / "past.parquet", limits=limits)
    again = read_experience(Experience, tmp_path / "past.parquet", limits=limits)
    assert losses_of(again) == CURVES
    assert again.curves is not None
    assert past.curves is not None
    assert np.array_equal(again.curves.seconds, past.curves.seconds)


def test_files_of_several_row_groups(past: Experience, tmp_path: Path) -> None:
    limits = FileLimits(rows_a_group=1)
    write_experience(past, tmp_path / "past.parquet", limits=limits)
    assert losses_of(read_experience(Experience, tmp_path / "past.parquet")) == CURVES


def test_without_curves_files_are_as_before(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    plain = Experience.build(
        SPACE, METRICS, ["b"], [0], SPACE.encode([PLAIN.config]), [0], [[0.7, 0.3]]
    )
    assert plain.append([PLAIN]).curves is None
    plain.save(tmp_path / "plain.parquet")
    names = pq.read_schema(tmp_path / "plain.parquet").names
    assert not [name for name in names if name.startswith("curve")]
    assert b'"version": 1' in pq.read_metadata(tmp_path / "plain.parquet").metadata[b"foretune"]


def test_selections_keep_them(past: Experience) -> None:
    assert losses_of(past.only(["a"])) == {k: v for k, v in CURVES.items() if k[0] == "a"}
    assert losses_of(past.without(["a"])) == {k: v for k, v in CURVES.items() if k[0] == "b"}
    assert losses_of(past.with_metrics(["accuracy", "loss"])) == CURVES
    assert losses_of(past.compact()) == CURVES


def test_merging_keeps_them(past: Experience) -> None:
    a, b = past.only(["a"]), past.only(["b"])
    assert losses_of(a.merge(b.with_metrics(["accuracy", "loss"]))) == CURVES
    assert losses_of(a.merge(past)) == CURVES


def test_other_names_and_other_spaces_keep_them(past: Experience) -> None:
    renamed = past.renamed({"depth": "layers"})
    assert losses_of(renamed) == CURVES
    wider = Space.of({"lr": (1e-4, 1.0, "log"), "depth": (1, 8), "dropout": (0.0, 0.5)})
    assert losses_of(past.in_space(wider, assumed={"dropout": 0.0})) == CURVES
    narrower = Space.of({"lr": (0.15, 1.0, "log"), "depth": (1, 8)})
    kept = losses_of(past.in_space(narrower))
    assert kept == {key: of for key, of in CURVES.items() if key[1] > 0.15}


def test_a_curve_counts_for_the_fingerprint(past: Experience) -> None:
    from foretune.experience.fingerprints import fingerprint_of_evaluations

    other = past.append([evaluation("a", 0.7, [0.3, 0.2])])
    changed = past.append([evaluation("a", 0.7, [0.4, 0.2])])
    assert fingerprint_of_evaluations(other) != fingerprint_of_evaluations(changed)


def test_curves_of_other_rows_are_refused(past: Experience) -> None:
    assert past.curves is not None
    with refuses("wrong-shape", field="curves"):
        Experience.build(
            SPACE,
            METRICS,
            ["b"],
            [0],
            SPACE.encode([PLAIN.config]),
            [0],
            [[0.7, 0.3]],
            curves=past.curves,
        )


def test_a_summary_counts_them(past: Experience) -> None:
    from foretune.experience import summarise

    lines = [line.split("  ")[-1].strip() for line in summarise(past).splitlines()[:9]]
    assert "3 with 6 points" in lines
    assert "1 to 3 points, half of them at least 2, up to step 3" in lines
    assert "1 (25.0%)" in lines
    assert "0 (0.0%)" in lines
