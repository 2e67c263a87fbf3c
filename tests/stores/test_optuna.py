import datetime
import sqlite3
import warnings
from contextlib import closing

import pytest

from foretune.errors import ExperienceError
from foretune.experience import Direction, Metric, Status
from foretune.space import Kind, Space
from foretune.stores.files.dropped_rows import NOT_ENDED, TOLD_IN_PART
from foretune.stores.optuna import study_reader as importer
from foretune.stores.optuna.storage import open_storage
from foretune.stores.studies import open_study
from tests.refusals import refuses, warns

optuna = pytest.importorskip("optuna")
from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
X = FloatDistribution(0.0, 1.0)


def trial(params, distributions, value=None, state=TrialState.COMPLETE, values=None):
    return create_trial(
        params=params, distributions=distributions, value=value, values=values, state=state
    )


def points(*pairs):
    return [trial({"x": x}, {"x": X}, value) for x, value in pairs]


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.log"


def new_study(source, name, **options):
    storage = str(source)
    if "://" not in storage:
        backend = optuna.storages.journal.JournalFileBackend(storage)
        storage = optuna.storages.JournalStorage(backend)
    return optuna.create_study(storage=storage, study_name=name, **options)


def store(source, studies, **options):
    for name, trials in studies.items():
        new_study(source, name, **options).add_trials(trials)


def test_one_task_a_study(journal):
    store(journal, {"a": points((0.25, 1.0), (0.5, 2.0)), "b": points((0.25, 3.0))})
    experience = importer.read(journal)
    assert experience.tasks == ("a", "b")
    assert experience.metrics[0].name == "value"
    assert experience.task("a").configs.dicts() == [{"x": 0.25}, {"x": 0.5}]
    assert experience.losses.tolist() == [[1.0], [2.0], [3.0]]


def test_a_database_and_its_file_are_sources_too(tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    store(url, {"a": points((0.5, 2.0))})
    for source in (url, tmp_path / "studies.db"):
        assert importer.read(source).losses.tolist() == [[2.0]]


@pytest.mark.parametrize("name", ["run%41.db", "run#1.db"])
def test_a_file_is_read_whatever_letters_its_name_holds(tmp_path, name):
    made = tmp_path / "past.db"
    store(f"sqlite:///{made}", {"a": points((0.5, 2.0))})
    made.rename(tmp_path / name)
    assert importer.read(str(tmp_path / name)).tasks == ("a",)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_password_of_a_storage_is_not_told():
    with pytest.raises(ExperienceError) as told:
        importer.read("postgresql+none://me:secret@here/studies")
    assert "secret" not in str(told.value)


def test_only_the_studies_that_were_named(journal):
    store(journal, {"a": points((0.25, 1.0)), "b": points((0.5, 3.0))})
    assert importer.read(journal, studies=["b"]).tasks == ("b",)
    with refuses("unknown-study", value="c"):
        importer.read(journal, studies=["c"])


def test_a_study_that_was_run_by_optuna(journal):
    def objective(trial):
        model = trial.suggest_categorical("model", ["svm", "tree"])
        if model == "tree":
            return trial.suggest_int("depth", 1, 8)
        kernel = trial.suggest_categorical("kernel", ["rbf", "poly"])
        c = trial.suggest_float("C", 1e-3, 1e3, log=True)
        return c + (trial.suggest_int("degree", 2, 5) if kernel == "poly" else 0)

    study = new_study(journal, "s", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experience = importer.read(journal)
    assert experience.task("s").configs.dicts() == [t.params for t in study.trials]
    assert experience.losses[:, 0].tolist() == [t.value for t in study.trials]
    structure = experience.space.structure
    assert [stage.name for stage in structure.stages] == ["model"]
    scale = {p.name: p.log for p in experience.space.parameters}
    assert scale["C"]


def test_layers_that_depend_on_a_number(journal):
    layers, units = IntDistribution(1, 2), IntDistribution(4, 64)
    trials = [
        trial({"layers": 1, "u0": 8}, {"layers": layers, "u0": units}, 1.0),
        trial({"layers": 2, "u0": 8, "u1": 16}, {"layers": layers, "u0": units, "u1": units}, 0.5),
    ]
    store(journal, {"a": trials})
    assert importer.read(journal).task("a").configs.dicts() == [t.params for t in trials]


def test_ranges_widen_and_choices_add_up(journal):
    def one(x, n, c, low):
        return trial(
            {"x": x, "n": n, "c": c},
            {
                "x": FloatDistribution(low, low + 1),
                "n": IntDistribution(int(low), int(low) + 4),
                "c": CategoricalDistribution([c, "z"]),
            },
            1.0,
        )

    store(journal, {"a": [one(0.5, 3, "p", 0.0)], "b": [one(2.5, 6, "q", 2.0)]})
    space = importer.read(journal).space
    by_name = {p.name: p for p in space.parameters}
    assert (by_name["x"].low, by_name["x"].high) == (0.0, 3.0)
    assert (by_name["n"].low, by_name["n"].high) == (0, 6)
    assert set(by_name["c"].choices) == {"p", "q", "z"}


def test_integers_and_floats_of_one_name_become_floats(journal):
    store(
        journal,
        {
            "a": [trial({"x": 3}, {"x": IntDistribution(1, 4)}, 1.0)],
            "b": [trial({"x": 0.5}, {"x": FloatDistribution(0.0, 1.0)}, 1.0)],
        },
    )
    experience = importer.read(journal)
    assert experience.space.parameters[0].kind is Kind.FLOAT
    assert experience.task("a").configs.dicts() == [{"x": 3.0}]


def test_refuses_a_name_of_two_kinds(journal):
    store(
        journal,
        {
            "a": points((0.5, 1.0)),
            "b": [trial({"x": "p"}, {"x": CategoricalDistribution(["p", "q"])}, 1.0)],
        },
    )
    with refuses("different-kinds", field="x", value="CategoricalDistribution"):
        importer.read(journal)


def test_values_on_a_grid_keep_their_place(journal):
    grid = FloatDistribution(0.0, 1.0, step=0.1)
    store(journal, {"a": [trial({"x": 0.1 + 0.2}, {"x": grid}, 1.0)]})
    assert importer.read(journal).task("a").configs.dicts() == [{"x": 0.3}]


def test_a_step_too_fine_for_a_list_is_no_obstacle(journal):
    fine = IntDistribution(0, 10**6, step=2)
    store(journal, {"a": [trial({"n": 640}, {"n": fine}, 1.0)]})
    experience = importer.read(journal)
    assert experience.space.parameters[0].kind is Kind.INT
    assert experience.task("a").configs.dicts() == [{"n": 640}]


def test_none_can_be_a_choice(journal):
    depth = CategoricalDistribution([None, 3, 5])
    leaves = IntDistribution(2, 9)
    trials = [
        trial({"depth": None, "leaves": 4}, {"depth": depth, "leaves": leaves}, 1.0),
        trial({"depth": 3}, {"depth": depth}, 2.0),
    ]
    store(journal, {"a": trials})
    assert importer.read(journal).task("a").configs.dicts() == [t.params for t in trials]


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_choices_that_are_lists_become_tuples(journal):
    def layers(choices, chosen):
        return [trial({"layers": chosen}, {"layers": CategoricalDistribution(choices)}, 0.0)]

    first, second = layers([[8], [8, [4]]], [8, [4]]), layers([(8,), (16,)], (16,))
    store(journal, {"a": first, "b": second})
    experience = importer.read(journal)
    assert experience.space.parameters[0].choices == ((8,), (8, (4,)), (16,))
    assert experience.configs.dicts() == [{"layers": (8, (4,))}, {"layers": (16,)}]


@pytest.mark.parametrize("choices", [[True, 1], [{"units": 8}, {"units": 4}]])
@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_refuses_choices_that_no_space_can_hold(journal, choices):
    store(journal, {"a": [trial({"c": choices[0]}, {"c": CategoricalDistribution(choices)}, 0.0)]})
    with refuses("bad-choices", field="c"):
        importer.read(journal)


def test_gaps_without_a_reason_get_the_default_and_a_warning(journal):
    trials = points((0.25, 1.0), (0.25, 2.0))
    trials.append(trial({"x": 0.25, "y": 0.75}, {"x": X, "y": X}, 3.0))
    store(journal, {"a": trials})
    with warns("missing-values", field="y", value=2):
        experience = importer.read(journal)
    assert [c["y"] for c in experience.task("a").configs.dicts()] == [0.5, 0.5, 0.75]
    with warns("missing-values", field="y"):
        assert importer.read(journal, missing="drop").configs.dicts() == [{"x": 0.25, "y": 0.75}]
    with warns("missing-values", field="y"):
        drawn = importer.read(journal, missing="marginalise").task("a").configs.dicts()
    assert [c["y"] for c in drawn] == [0.75, 0.75, 0.75]  # the only value that is recorded


def test_none_is_not_chosen_by_trials_that_lack_the_choice(journal):
    features = CategoricalDistribution(["sqrt", None])
    given = [{"x": x, "features": f} for x, f in ((0.1, None), (0.2, "sqrt"))]
    store(
        journal,
        {
            "a": [trial(params, {"x": X, "features": features}, 1.0) for params in given],
            "b": points((0.3, 1.0)),
        },
    )
    with warns("missing-values", field="features", value=1):
        found = importer.read(journal).configs.dicts()
    assert [config["features"] for config in found] == [None, "sqrt", "sqrt"]


def test_pruned_trials_were_stopped_and_unfinished_ones_are_left_out(journal):
    store(
        journal,
        {
            "a": [
                *points((0.5, 1.0)),
                trial({"x": 0.1}, {"x": X}, state=TrialState.FAIL),
                trial({"x": 0.2}, {"x": X}, 7.0, state=TrialState.PRUNED),
                trial({"x": 0.3}, {"x": X}, state=TrialState.RUNNING),
                trial({}, {}, state=TrialState.WAITING),
            ]
        },
    )
    with warns("left-out", field="trials", value=(NOT_ENDED, 2, ("a",))) as warned:
        records = importer.read(journal).task("a")
    assert [each.filename for each in warned] == [__file__]
    assert [c["x"] for c in records.configs.dicts()] == [0.5, 0.1, 0.2]
    assert records.status.tolist() == [Status.DONE, Status.FAILED, Status.STOPPED]
    assert records.is_success.tolist() == [True, False, False]
    assert records.values[[0, 2], 0].tolist() == [1.0, 7.0]
    assert records.curves is None


def test_trials_that_broke_a_constraint_fail_but_tell_of_the_space(journal):
    wide = {"x": X, "y": X}
    broken = create_trial(
        params={"x": 0.5, "y": 0.5},
        distributions=wide,
        value=-9.0,
        system_attrs={"constraints": (1.0,)},
    )
    store(journal, {"a": [trial({"x": 0.5, "y": 0.25}, wide, 1.0), broken]})
    records = importer.read(journal).task("a")
    assert records.status.tolist() == [Status.DONE, Status.FAILED]
    assert records.is_success.tolist() == [True, False]
    assert records.configs.dicts()[1] == {"x": 0.5, "y": 0.5}


def test_a_trial_that_failed_early_does_not_change_the_space(journal):
    both = {"x": X, "y": X}
    store(
        journal,
        {
            "a": [
                trial({"x": 0.5, "y": 0.5}, both, 1.0),
                trial({"x": 0.5}, {"x": X}, state=TrialState.FAIL),
            ]
        },
    )
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))) as warned:
        experience = importer.read(journal)
    assert [each.filename for each in warned] == [__file__]
    assert not experience.space.config_space.conditions
    assert experience.configs.dicts() == [{"x": 0.5, "y": 0.5}]


def test_a_failed_trial_with_all_that_is_active_in_it_is_kept(journal):
    """Also where nothing of its kind succeeded, so that the space knows no more of it."""
    model = {"model": CategoricalDistribution(["svm", "tree", "knn"])}
    gap = {"x": X, **model}
    store(
        journal,
        {
            "a": [
                trial({"model": "svm", "x": 0.5}, gap, 1.0),
                trial({"model": "tree"}, model, 2.0),
                trial({"model": "tree"}, model, state=TrialState.FAIL),
                trial({"model": "knn", "k": 0.5}, {"k": X, **model}, state=TrialState.FAIL),
            ]
        },
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records = importer.read(journal).task("a")
    models = [config["model"] for config in records.configs.dicts()]
    assert models == ["svm", "tree", "tree", "knn"]
    assert records.status.tolist() == [Status.DONE, Status.DONE, Status.FAILED, Status.FAILED]


def test_a_failed_trial_with_the_gaps_of_one_that_succeeded_is_kept(journal):
    trials = points((0.25, 1.0), (0.5, 2.0))
    trials.append(trial({"x": 0.3, "y": 0.75}, {"x": X, "y": X}, 3.0))
    trials.append(trial({"x": 0.4}, {"x": X}, state=TrialState.FAIL))
    store(journal, {"a": trials})
    with warns("missing-values", field="y", value=2) as warned:
        assert len(importer.read(journal)) == 4
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.parametrize("gap", [{}, {"y": 0.5}])
def test_trials_of_another_kind_do_not_excuse_one_that_failed_early(journal, gap):
    """Not even where they lack something themselves."""
    model = {"model": CategoricalDistribution(["svm", "tree"])}
    given = {**model, **dict.fromkeys(gap, X)}
    store(
        journal,
        {
            "a": [
                trial({"model": "svm", "x": 0.5, **gap}, {**given, "x": X}, 1.0),
                trial({"model": "tree", **gap}, given, 2.0),
                trial({"model": "tree"}, model, 2.0),
                trial({"model": "svm"}, model, state=TrialState.FAIL),
                trial({"model": "tree"}, model, state=TrialState.FAIL),
            ]
        },
    )
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))):
        records = importer.read(journal).task("a")
    assert records.status.tolist() == [*[Status.DONE] * 3, Status.FAILED]
    assert records.configs.dicts()[-1] == {"model": "tree", **gap}


def test_trials_with_none_of_the_hyperparameters_are_left_out(journal):
    y = {"y": X}
    store(
        journal,
        {
            "a": [*points((0.5, 1.0)), trial({}, {}, state=TrialState.FAIL)],
            "b": [trial({"y": 0.5}, y, state=TrialState.FAIL)],
            "c": points((0.25, 2.0)),
        },
    )
    with warns("left-out", value=("have none of the hyperparameters 'x'", 2, ("a", "b"))):
        experience = importer.read(journal)
    assert experience.tasks == ("a", "c")
    assert experience.status.tolist() == [Status.DONE, Status.DONE]


def test_refuses_studies_that_share_no_hyperparameter(journal):
    y = trial({"y": 0.5}, {"y": X}, 1.0)
    store(journal, {"a": points((0.5, 1.0)), "b": [y]})
    with refuses("no-shared-hyperparameter", field="b", value=["y"]):
        importer.read(journal)
    store(journal, {"both": [trial({"x": 0.5, "y": 0.5}, {"x": X, "y": X}, 1.0)]})
    with warns("missing-values", value=1):
        assert importer.read(journal).tasks == ("a", "b", "both")


def test_refuses_trials_without_hyperparameters(journal):
    store(journal, {"a": [trial({}, {}, 1.0)], "b": [trial({}, {}, 2.0)]})
    with refuses("no-hyperparameters", value=["a", "b"]):
        importer.read(journal)


def test_several_objectives(journal):
    study = new_study(journal, "a", directions=["minimize", "maximize"])
    study.add_trial(trial({"x": 0.5}, {"x": X}, values=[1.0, 2.0]))
    experience = importer.read(journal)
    assert [m.name for m in experience.metrics] == ["value_0", "value_1"]
    assert experience.losses.tolist() == [[1.0, -2.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(["error", "accuracy"])
    assert [m.name for m in importer.read(journal).metrics] == ["error", "accuracy"]
    assert importer.read(journal).metrics[1].direction is Direction.MAX


def test_run_times(journal):
    start = datetime.datetime(2024, 1, 1, 12, 0, 0)
    timed = create_trial(params={"x": 0.5}, distributions={"x": X}, value=1.0)
    timed.datetime_start = start
    timed.datetime_complete = start + datetime.timedelta(seconds=90)
    store(journal, {"a": [timed]})
    assert importer.read(journal).seconds.tolist() == [90.0]


def test_refuses_mixed_directions(journal):
    store(journal, {"a": points((0.5, 1.0))})
    store(journal, {"b": points((0.5, 1.0))}, direction="maximize")
    with refuses("different-metrics", field="b"):
        importer.read(journal)


def test_refuses_a_storage_without_trials(journal):
    store(journal, {"a": []})
    with refuses("no-ended-trial", value=["a"]):
        importer.read(journal)


def test_a_missing_database_is_not_created(tmp_path):
    with refuses("no-storage", kind=ExperienceError):
        importer.read(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("content", [b"SQLite format 3\x00 damaged", b"no journal\n", b"[1]\n"])
def test_refuses_other_files(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with refuses("unreadable-storage"):
        importer.read(tmp_path / "file")


def test_a_database_of_another_program_is_called_one(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE theirs (x INTEGER)")
    with refuses("unreadable-storage", value="it is a database without Optuna's tables"):
        importer.read(tmp_path / "other.db")


def test_refuses_a_folder(tmp_path):
    with refuses("unreadable-storage", value="it is a folder"):
        importer.read(tmp_path)


def test_says_what_to_install_without_optuna(monkeypatch, journal):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with refuses("missing-extra", field="optuna"):
        importer.read(journal)


@pytest.mark.parametrize("text", ["garbage", "garbage\nmore\n", "[1]\n", '{"a": 1}\n'])
def test_a_file_that_is_neither_a_database_nor_a_journal_is_refused(tmp_path, text):
    (tmp_path / "bad.db").write_text(text)
    with refuses("unreadable-storage", value="it is neither a database nor a journal"):
        importer.read(tmp_path / "bad.db")


@pytest.mark.parametrize("source", ["no.db", "sqlite:///no.db", "sqlite+pysqlite:///no.db"])
def test_a_storage_that_is_not_there_is_not_made(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    with refuses("no-storage", value="no.db"):
        importer.read(source)
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_read_with_a_driver_that_is_installed(monkeypatch):
    asked = []

    def storage(url, **_):
        asked.append(url)
        raise RuntimeError("not here")

    monkeypatch.setattr("optuna.storages.RDBStorage", storage)
    monkeypatch.setattr(
        "foretune._base.databases.find_spec", lambda name: name == "psycopg" or None
    )
    with refuses("unreadable-storage", value="not here"):
        importer.read("postgresql://me@host/studies")
    # Where psycopg is the usual driver of SQLAlchemy, the URL need not name it.
    assert asked[0].replace("+psycopg", "") == "postgresql://me@host/studies"


# Studies that Foretune has begun

OWN = {
    "layers": [(32,), (32, 64)],
    "flag": [True, 1.5, "1"],
    "batch": {"ordinal": [32, 64, 128]},
    "epochs": 10,
    "model": {"svm": {"C": (0.1, 10.0, "log")}, "naive": {}},
}


def begin_own(source, name, space, n=6):
    """A study whose last trial took too long."""
    space = Space.of(space)
    configs = space.sample(n, seed=0).dicts()
    with open_study(str(source), name, space=space, metrics=[Metric("loss")]) as study:
        for number, config in enumerate(configs):
            study.begin(config, chosen_by="")
            status = Status.TIMEOUT if number == n - 1 else Status.DONE
            values = {"loss": float(number)} if status is Status.DONE else {}
            study.end(number, seconds=3.5, status=status, values=values)
    return configs


def test_studies_of_foretune_tell_their_space_themselves(tmp_path):
    configs = begin_own(tmp_path / "own.db", "a", OWN)
    for found in (
        importer.read(tmp_path / "own.db"),
        importer.read_each(tmp_path / "own.db")["a"],
    ):
        assert found.space == Space.of(OWN)
        assert found.task("a").configs.dicts() == configs
        assert found.seconds.tolist() == [3.5] * 6
        assert found.status.tolist() == [Status.DONE] * 5 + [Status.TIMEOUT]


def test_studies_of_foretune_with_differing_spaces_share_one_that_holds_both(tmp_path):
    store_ = tmp_path / "own.db"
    one = begin_own(store_, "a", OWN)
    two = begin_own(store_, "b", {**OWN, "layers": [(32,), (8,)], "new": (0.0, 1.0)})
    with warns("missing-values", field="new", value=6) as warned:
        found = importer.read(store_)
    assert {each.filename for each in warned} == {__file__}
    assert found.task("a").configs.dicts() == [{**each, "new": 0.5} for each in one]
    assert found.task("b").configs.dicts() == two
    begin_own(store_, "c", {"x": (0.0, 1.0)})
    with refuses("no-shared-hyperparameter", field="c", value=["x"]):
        importer.read(store_)


def test_trials_that_others_added_to_a_study_of_foretune_are_left_out(tmp_path):
    url = f"sqlite:///{tmp_path / 'own.db'}"
    configs = begin_own(url, "a", {"x": (0.0, 0.5)})
    optuna.load_study(study_name="a", storage=url).add_trials(points((0.9, 1.0)))
    with warns("left-out", value=("were not begun by foretune", 1, ("a",))):
        assert importer.read(url).configs.dicts() == configs


def test_a_study_of_foretune_whose_space_cannot_be_read_is_read_as_any_other(tmp_path):
    url = f"sqlite:///{tmp_path / 'own.db'}"
    configs = begin_own(url, "a", {"x": (0.0, 0.5)})
    study = optuna.load_study(study_name="a", storage=url)
    for identity in ({"format": 1, "space": "{"}, {"format": 9}, "mine"):
        study.set_user_attr("foretune", identity)
        assert importer.read(url).configs.dicts() == configs


@pytest.mark.parametrize(
    "odd",
    [
        {"seed": IntDistribution(0, 2**60)},
        {"c": CategoricalDistribution([float("nan"), 1.0])},
        {"wide": FloatDistribution(1e-300, 1.0, log=True)},
    ],
)
def test_a_study_that_no_space_can_hold_does_not_keep_others_from_being_read(tmp_path, odd):
    url = f"sqlite:///{tmp_path / 'all.db'}"
    [name] = odd
    store(url, {"odd": [trial({name: 1}, odd, 1.0)], "a": points((0.5, 2.0))})
    found = importer.read_each(url)
    assert isinstance(found["odd"], ExperienceError)
    assert f"'{name}'" in str(found["odd"])
    assert found["a"].losses.tolist() == [[2.0]]


@pytest.mark.parametrize("studies", [[], ["b"]])
def test_the_password_of_a_source_is_not_told(journal, studies):
    store(journal, {"a": []})
    source = "postgresql://me:secret@here/studies"
    with pytest.raises(ExperienceError, match=r"me:\*\*\*@here") as told:
        importer.read(source, studies=studies, opened=lambda _: open_storage(str(journal)))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("kind", ["journal", "database"])
def test_intermediate_values_are_learning_curves(tmp_path, kind):
    source = tmp_path / "j.log" if kind == "journal" else f"sqlite:///{tmp_path}/s.db"
    inf, nan = float("inf"), float("nan")
    reports = [{1: 4.0, 10: 1.0, 2: inf}, {1: 5.0, 3: nan}, {}, {0: 2.0}]
    states = [TrialState.COMPLETE, TrialState.PRUNED, TrialState.COMPLETE, TrialState.FAIL]
    values = [0.5, 5.0, 0.75, None]
    trials = [
        create_trial(
            params={"x": 0.25 * (1 + place)},
            distributions={"x": X},
            value=values[place],
            state=states[place],
            intermediate_values=each,
        )
        for place, each in enumerate(reports)
    ]
    # Trials of another study stand between them in the database.
    store(source, {"a": trials[:2], "b": trials[2:]})
    experience = importer.read(source)
    curves = experience.curves
    assert curves is not None
    assert curves.lengths.tolist() == [3, 2, 0, 1]
    assert curves.steps.tolist() == [1, 2, 10, 1, 3, 0]
    assert repr(curves.values[:, 0].tolist()) == repr([4.0, inf, 1.0, 5.0, nan, 2.0])
    assert [Status(each).name for each in experience.status] == [
        *("DONE", "STOPPED", "DONE", "FAILED")
    ]
    assert experience.values[:3, 0].tolist() == [0.5, 5.0, 0.75]
