"""Past studies as a table, and as experience in the space of a new study."""

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from foretune.experience import Experience, Metric
from foretune.space import Space
from foretune.stores.optuna.past_studies import PastStudies, past_studies
from foretune.stores.optuna.stored_studies import same_storage
from tests.integrations.optuna.examples import SPACE, relatives

optuna.logging.set_verbosity(optuna.logging.WARNING)

LR = FloatDistribution(1e-4, 1.0, log=True)
WIDE = FloatDistribution(1e-6, 10.0, log=True)
KIND = CategoricalDistribution(["a", "b"])
OTHER_KIND = CategoricalDistribution(["b", "c"])
DEPTH = IntDistribution(1, 9)


def add(study: optuna.Study, value: object, **given: tuple[object, object]) -> None:
    study.add_trial(
        optuna.create_trial(
            params={name: pair[0] for name, pair in given.items()},
            distributions={name: pair[1] for name, pair in given.items()},
            values=list(np.atleast_1d(value)),
        )
    )


def fill(storage: optuna.storages.BaseStorage) -> None:
    first = optuna.create_study(storage=storage, study_name="first")
    for number in range(4):
        add(first, number, lr=(10.0 ** -(number + 1), LR), kind=("ab"[number % 2], KIND))
    second = optuna.create_study(storage=storage, study_name="second", direction="maximize")
    for number in range(4):
        add(second, number, lr=(10.0**-number, WIDE), kind=("c", OTHER_KIND), depth=(5, DEPTH))
    add(second, float("inf"), lr=(0.1, WIDE), kind=("b", OTHER_KIND), depth=(5, DEPTH))
    several = optuna.create_study(storage=storage, directions=["minimize"] * 2)
    add(several, [1.0, 2.0], lr=(0.1, LR))
    odd = optuna.create_study(storage=storage, study_name="odd")
    add(odd, 0.0, lr=("large", CategoricalDistribution(["large", "small"])))


@pytest.fixture(params=["database", "interface"])
def storage(request, tmp_path):
    made = (
        optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'past.db'}")
        if request.param == "database"
        else optuna.storages.InMemoryStorage()
    )
    fill(made)
    return made


def losses_of(past: PastStudies) -> dict[str, list[float]]:
    return {
        task: part.task(task).losses[:, 0].tolist() for part in past.parts for task in part.tasks
    }


def test_studies_of_differing_spaces_are_read_in_parts(storage):
    past = past_studies(storage, 1, but=None)
    # A rate is a number in two studies and a choice in the third.
    assert [part.tasks for part in past.parts] == [("first", "second"), ("odd",)]
    first, second = (past.parts[0].task(name).configs.dicts() for name in ("first", "second"))
    assert [each["lr"] for each in first] == [0.1, 0.01, 0.001, 1e-4]
    assert [each["kind"] for each in first] == ["a", "b", "a", "b"]
    assert [each["kind"] for each in second] == ["c"] * 4 + ["b"]
    assert "depth" not in first[0]  # nothing is known of it
    assert past.parts[1].configs.dicts() == [{"lr": "large"}]


def test_values_of_studies_with_differing_directions_become_losses(storage):
    found = losses_of(past_studies(storage, 1, but=None))
    assert (found["first"], found["odd"]) == ([0, 1, 2, 3], [0])
    # An infinite value counts as a failure.
    assert found["second"] == pytest.approx([0, -1, -2, -3, np.nan], nan_ok=True)


def test_the_study_itself_is_left_out(storage):
    first = storage.get_study_id_from_name("first")
    assert [part.tasks for part in past_studies(storage, 1, but=first).parts] == [
        ("second",),
        ("odd",),
    ]
    assert past_studies(storage, 3, but=None) is None


def test_trials_that_broke_a_constraint_have_failed(storage):
    study = optuna.create_study(storage=storage, study_name="bound")
    # In both ways that Optuna has stored constraints.
    for number, kept in enumerate(
        ({}, {"constraints": (-1.0, 0.5)}, {"constraints": (0.0,)}, {"constraints:size": 2.0})
    ):
        study.add_trial(
            optuna.create_trial(
                params={"lr": 0.1}, distributions={"lr": LR}, value=number, system_attrs=kept
            )
        )
    found = losses_of(past_studies(storage, 1, but=None))["bound"]
    np.testing.assert_equal(found, [0.0, np.nan, 2.0, np.nan])


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_choices_that_no_space_can_hold_are_left_out(storage):
    for number, choices in enumerate([[[1, 2], [3]], [[1, 2], [4]]]):
        study = optuna.create_study(storage=storage, study_name=f"lists {number}")
        add(study, 0.0, lr=(0.1, LR), layers=([1, 2], CategoricalDistribution(choices)))
    past = past_studies(storage, 1, but=None)
    assert past.parts[0].tasks[-2:] == ("lists 0", "lists 1")
    assert "layers" not in past.parts[0].space.names


def test_a_file_is_the_same_storage_however_it_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short, whole, other = (
        optuna.storages.RDBStorage(f"sqlite:///{path}")
        for path in ("mine.db", tmp_path / "mine.db", "other.db")
    )
    assert same_storage(short, whole)
    assert not same_storage(short, other)


def test_projected_on_a_new_space(storage):
    past = past_studies(storage, 1, but=None)
    space = Space.of({"lr": LR, "depth": DEPTH})
    experience = past.experience_in(space)
    assert experience.tasks == ("first", "second")
    configs = experience.task("first").configs.dicts()
    # No trial of the first study knows the depth: they all get the default.
    assert [config["depth"] for config in configs] == [5] * 4
    assert [config["lr"] for config in configs] == pytest.approx([0.1, 0.01, 0.001, 1e-4])
    narrow = Space.of({"lr": FloatDistribution(0.005, 1.0, log=True), "kind": KIND})
    assert past.experience_in(narrow) is None  # two trials of the first study lie in it


def test_half_of_the_hyperparameters_must_be_known(storage):
    past = past_studies(storage, 1, but=None)
    unknown = {name: FloatDistribution(0.0, 1.0) for name in ("p", "q")}
    assert past.experience_in(Space.of({"lr": LR, "depth": DEPTH, "p": unknown["p"]})).tasks == (
        "second",
    )
    assert past.experience_in(Space.of({"lr": LR, **unknown})) is None


def test_what_was_typically_best(storage):
    typical = past_studies(storage, 1, but=None).typical_best
    # The best of the first study has lr 0.1 and kind a, that of the second 0.001 and c.
    assert typical["depth"] == 5
    assert typical["kind"] in ("a", "c")
    assert typical["lr"] == pytest.approx(0.0505)  # a choice in one study, a number in two


def test_a_space_that_half_of_the_studies_had_is_usual():
    storage = optuna.storages.InMemoryStorage()
    for number in range(3):
        study = optuna.create_study(storage=storage, study_name=str(number))
        for row in range(4):
            tree = {"kind": ("a", KIND), "depth": (row + 1, DEPTH)}
            add(study, row, **(tree if row % 2 else {"kind": ("b", KIND), "lr": (0.1, LR)}))
    space = past_studies(storage, 1, but=None).usual_space
    assert {(c.child.name, c.value) for c in space.config_space.conditions} == {
        ("depth", "a"),
        ("lr", "b"),
    }
    for number in range(4):
        study = optuna.create_study(storage=storage, study_name=f"other-{number}")
        add(study, 1.0, **{f"p{number}": (0.5, FloatDistribution(0.0, 1.0))})
    assert past_studies(storage, 1, but=None).usual_space is None


def test_an_experience_is_kept_as_it_is_in_its_own_space():
    experience = relatives(3, SPACE)
    past = PastStudies((experience,))
    assert past.experience_in(SPACE) is experience
    smaller = past.experience_in(Space.of({"x": (0.5, 1.0)}))
    kept = experience.configs.values[experience.config_index, SPACE.names.index("x")] >= 0.5
    np.testing.assert_array_equal(smaller.losses, experience.losses[kept])


def of_two_fidelities():
    """Three configurations, of which the third is the best only at the lower fidelity."""
    configs = SPACE.from_values(np.array([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5]]))
    values = [5.0, 0.1, 4.0, 0.2, 0.01, 0.9]
    return Experience.build(
        SPACE,
        [Metric("loss")],
        ["t"],
        [0] * 6,
        configs,
        np.repeat([0, 1, 2], 2),
        values,
        fidelity=[1.0, 10.0] * 3,
    )


def test_losses_of_different_fidelities_are_not_compared():
    past = PastStudies((of_two_fidelities(),))
    assert past.typical_best["x"] == pytest.approx(0.1)
