import json
import math
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from foretune.automl.knowledge import bundle as bundles
from foretune.automl.knowledge.bundle import SHIPPED, Bundle
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.knowledge import FitKnowledge, forget_lessons, own_bundle
from foretune.automl.knowledge.learn_bundle import (
    KEPT_METHODS,
    LearningPlan,
    build_portfolio,
    learn_bundle,
)
from foretune.automl.knowledge.learning_processes import (
    LearningJob,
    learn_in_processes,
    read_bytes,
    save_to_bytes,
)
from foretune.automl.knowledge.memory import Memory
from foretune.automl.knowledge.relevant_experience import (
    STAND_INS,
    by_metric,
    recommend_configs,
    select_comparable,
    stand_in,
    task_similarity,
)
from foretune.automl.metrics import SCORERS, scorer
from foretune.automl.spaces import CLASSIFIERS, REGRESSORS, load_shipped_space
from foretune.errors import (
    MethodError,
)
from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.experience.alignment.restriction import reencode, restrict_experience
from foretune.methods.contracts import Target
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.run.inline import InlineExecutor
from foretune.search import METHODS, Optimizer
from foretune.search.prior_cache import taught_by
from foretune.search.suggestions import Told
from foretune.space import Space
from foretune.tables.target import Task
from tests.automl.past import ONLY, SPACE, knowledge_of, past
from tests.inline_site import InlineSite
from tests.refusals import refuses, warns

R2, RMSE = (scorer(name, Task.REGRESSION).metric for name in ("r2", "rmse"))
ZERO_SHOT = METHODS["zero-shot"]


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """No test reads or writes what the user has."""
    monkeypatch.setenv("FORETUNE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def known():
    return past()


@pytest.fixture(scope="module")
def ships(known, tmp_path_factory):
    """A folder that could ship, with the priors of a method that takes no time."""
    folder = tmp_path_factory.mktemp("ships")
    views = {name: by_metric(known, SCORERS[name].metric) for name in ("r2", "rmse")}
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    learn_bundle(views, plan, Bundle.open(folder), ships=known, about={"recipe": {"folds": 3}})
    return folder


@pytest.fixture(scope="module")
def part():
    return load_shipped_space(SPACE).build(("rf", "knn"))


def knows(ships, space=None, **options):
    space = space if space is not None else Experience.open(ships / f"{SPACE}.parquet").space
    return FitKnowledge.for_space(
        SPACE, **{"metric": "r2", "ships": ships, "space": space, **options}
    )


def remember(values, task="mine@000000000000000a", metrics=(R2, RMSE)):
    space = load_shipped_space(SPACE).build(ONLY)
    configs = space.sample(len(values), seed=4).dicts()
    found = [Evaluation(task, configs[i], {"r2": value}) for i, value in enumerate(values)]
    Memory.of_user().remember(FitDescription(SPACE, space, metrics, task, {"log_rows": 5.0}), found)
    return configs


# Metrics


@pytest.mark.parametrize(
    ("metric", "recorded", "speaks"),
    [
        ("auc", ["accuracy", "auc"], "auc"),
        ("matthews", ["accuracy", "balanced_accuracy"], "balanced_accuracy"),
        ("matthews", ["accuracy", "auc"], "accuracy"),
        ("unheard-of", ["r2", "rmse"], "r2"),
    ],
)
def test_the_nearest_recorded_metric_speaks(metric, recorded, speaks):
    assert stand_in(metric, recorded) == speaks
    assert set(STAND_INS.values()) <= set(SCORERS)


def test_experience_by_another_metric_is_turned_and_keeps_the_order(known):
    wanted = Metric("mae", Direction.MIN)
    made = by_metric(known, wanted)
    assert made.metrics == (wanted,)
    np.testing.assert_allclose(made.losses[:, 0], known.losses[:, 1])
    score = by_metric(known.with_metrics(["rmse"]), Metric("score", Direction.MAX))
    np.testing.assert_allclose(score.losses[:, 0], known.losses[:, 1])


def test_a_task_that_lacks_the_metric_speaks_by_another():
    space = Space.of({"x": (0.0, 1.0)})
    nan = np.nan
    mixed = Experience.build(
        space,
        [R2, RMSE],
        ["a", "b", "c"],
        [0, 0, 1, 1, 2, 2],
        space.encode([{"x": 0.0}, {"x": 1.0}]),
        [0, 1, 0, 1, 0, 1],
        [[0.1, nan], [0.2, nan], [nan, 3.0], [nan, 4.0], [nan, nan], [nan, nan]],
        status=[0, 0, 0, 0, Status.TIMEOUT, Status.FAILED],
    )
    made = by_metric(mixed, RMSE)
    assert made.task("a").losses[:, 0].tolist() == [-0.1, -0.2]
    assert made.task("b").losses[:, 0].tolist() == [3.0, 4.0]
    assert np.isnan(made.task("c").losses).all()
    with refuses("no-success", value=2):
        by_metric(mixed.only(["c"]), RMSE)


# What ships


def test_a_prior_that_ships_is_the_one_that_was_learnt(known, ships):
    knowledge = knows(ships)
    want = ZERO_SHOT.learn(by_metric(known, R2), seed=0).opening(Target(known.space))
    assert knowledge.prior(ZERO_SHOT).opening(Target(known.space)) == want
    assert "the shipped prior" in knowledge.origin(ZERO_SHOT)
    assert [str(source) for source in knowledge.sources] == [
        "shipped: 80 evaluations on 5 datasets"
    ]
    assert knowledge.notes == ()


def test_a_portfolio_that_ships_is_the_one_that_would_be_built(known, ships):
    knowledge = knows(ships)
    want = build_portfolio(by_metric(known, R2), 4, source="here").configs
    assert knowledge.portfolio(4).dicts() == list(want)
    assert len(Portfolio.open(ships / f"{SPACE}.portfolio.r2.json")) == 16


def test_no_experience_is_read_for_a_stored_prior_and_portfolio(ships, tmp_path):
    without_experience = shutil.copytree(ships, tmp_path / "without experience")
    [experience] = without_experience.glob("*.parquet")
    experience.unlink()
    knowledge = FitKnowledge.for_space(
        SPACE, metric="r2", ships=without_experience, space=load_shipped_space(SPACE).build(ONLY)
    )
    knowledge.prior(ZERO_SHOT)
    assert len(knowledge.portfolio(3)) == 3


def test_a_narrower_space_gets_a_lifted_prior_and_a_portfolio_of_its_own(ships, part):
    knowledge = knows(ships, space=part)
    first = knowledge.portfolio(4)
    assert first.space == part
    assert {config["estimator"] for config in first.dicts()} <= {"rf", "knn"}
    assert first.dicts()[0]["estimator"] == "rf"
    prior = knowledge.prior(ZERO_SHOT)
    assert prior.opening(Target(part)).dicts()[:4] == first.dicts()
    optimizer = Optimizer(Target(part), ZERO_SHOT, prior, seed=0)
    assert optimizer.ask()[0].config == first.dicts()[0]


def test_the_space_is_the_whole_one_where_none_is_given(ships):
    assert (
        FitKnowledge.for_space(SPACE, metric="r2", ships=ships).space
        == load_shipped_space(SPACE).build()
    )


def test_experience_is_narrowed_to_the_space(ships):
    knowledge = knows(ships, space=load_shipped_space(SPACE).build(("knn",)))
    assert {c["estimator"] for c in knowledge.experience.configs.dicts()} == {"knn"}


def test_methods_that_do_not_transfer_learn_nothing(ships):
    assert knows(ships).prior(METHODS["random"]) is not None


def test_a_method_that_nothing_is_kept_for_learns_now_and_once(ships, tmp_path):
    knowledge = knows(ships)
    method = METHODS["ws-gp"]
    want = knowledge.prior(method).opening(Target(knowledge.space))
    [file] = (tmp_path / "cache" / "priors").iterdir()
    before = file.stat().st_ino
    assert "learnt now from 5 datasets" in knowledge.origin(method)
    assert knows(ships).prior(method).opening(Target(knowledge.space)) == want
    # A prior that is learnt again takes the place of the file.
    assert file.stat().st_ino == before


def test_without_experience_only_methods_that_start_from_nothing_work(tmp_path):
    knowledge = FitKnowledge.for_space("cash", metric="accuracy", ships=tmp_path)
    assert knowledge.sources == ()
    assert knowledge.whole is None
    assert knowledge.experience is None
    assert knowledge.origin(ZERO_SHOT) == "no experience"
    knowledge.prior(METHODS["gp"])
    with pytest.raises(MethodError, match="got no experience"):
        knowledge.prior(ZERO_SHOT)
    with refuses("no-past-datasets"):
        knowledge.portfolio(3)


def test_another_metric_is_used_for_one_that_was_not_measured(ships):
    mae = Metric("mae", Direction.MIN)
    knowledge = knows(ships, metric="mae")
    assert knowledge.notes == ("the shipped experience did not measure mae; rmse is used instead",)
    assert knowledge.experience.metrics == (mae,)
    assert knowledge.prior(ZERO_SHOT) is not None


def test_experience_is_narrowed_to_the_space_of_the_user(known, part):
    knowledge = knowledge_of(known, part)
    assert knowledge.experience.space == part
    assert knowledge.tasks == 5
    assert len(knowledge.portfolio(2)) == 2


# Own experience


def test_own_experience_stands_beside_what_ships_and_is_narrowed(ships, part):
    configs = remember([0.5, 0.6, 0.7])
    knowledge = knows(ships)
    assert [source.kind for source in knowledge.sources] == ["shipped", "own"]
    assert knowledge.whole.tasks[-1] == "mine@000000000000000a"
    assert knowledge.whole.task("mine@000000000000000a").configs.dicts() == configs
    kept = sum(config["estimator"] in ("rf", "knn") for config in configs)
    mine = knows(ships, space=part).experience
    assert ("mine@000000000000000a" in mine.tasks) == (kept > 0)
    assert knows(ships, own=False).whole.tasks == tuple(f"past{i}" for i in range(5))


def test_the_table_that_is_about_to_be_searched_is_left_out(ships):
    remember([0.5, 0.6])
    assert len(knows(ships, without="renamed@000000000000000a").sources) == 1
    remember([0.5, 0.6], task="other@000000000000000b")
    assert knows(ships, without="mine@000000000000000a").whole.tasks[-1] == "other@000000000000000b"


def test_own_experience_that_cannot_be_read_is_left_out_and_said(ships):
    remember([0.5])
    [file] = Memory.of_user().folder.glob("*.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(file)
    knowledge = knows(ships)
    assert [source.kind for source in knowledge.sources] == ["shipped"]
    assert "your own experience is left out" in knowledge.notes[0]
    file.write_bytes(b"nothing")
    with warns("damaged-memory"):
        knowledge = knows(ships)
    assert [source.kind for source in knowledge.sources] == ["shipped"]


def test_own_searches_do_not_spoil_the_portfolio(ships):
    want = knows(ships).portfolio(3).dicts()
    for number in range(8):
        remember(np.linspace(0, 0.9, 7), task=f"mine{number}@{number}")
    knowledge = knows(ships)
    assert select_comparable(knowledge.whole).tasks == tuple(f"past{i}" for i in range(5))
    assert knowledge.portfolio(3).dicts() == want


def test_lessons_of_the_users_experience_come_first(ships):
    remember([0.5, 0.6, 0.7])
    views = {"r2": knows(ships).whole}
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    bundle, done = learn_bundle(views, plan, Bundle.open(own_bundle()))
    assert [(each.what, each.metric, each.note) for each in done] == [
        ("portfolio", "r2", ""),
        ("zero-shot", "r2", ""),
    ]
    assert "your own prior" in knows(ships).origin(ZERO_SHOT)
    # By another metric, what ships knows more than what speaks for it here.
    assert "the shipped prior" in knows(ships, metric="rmse").origin(ZERO_SHOT)
    _, again = learn_bundle(views, plan, bundle)
    assert {each.note for each in again} == {"up to date"}
    for file in (*own_bundle().glob("*.safetensors"), *own_bundle().glob("*.portfolio.*")):
        file.write_bytes(b"damaged")
    assert knows(ships).prior(ZERO_SHOT) is not None
    assert len(knows(ships).portfolio(2)) == 2
    forget_lessons(SPACE)
    assert "the shipped prior" in knows(ships).origin(ZERO_SHOT)
    assert [path.name for path in own_bundle().iterdir()] == ["manifest.json"]


def learnt_from_all(ships, learn=learn_in_processes):
    """Learn from all datasets by one metric, as `foretune learn` does."""
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    learn_bundle({"r2": knows(ships).whole}, plan, Bundle.open(own_bundle()), learn=learn)


def test_lessons_of_the_same_table_are_left_out(ships):
    remember([0.5, 0.6, 0.7])
    learnt_from_all(ships)
    renamed = knows(ships, without="renamed@000000000000000a")
    assert "the shipped prior" in renamed.origin(ZERO_SHOT)
    assert [shelf.learnt.portfolios for shelf in renamed.shelves if shelf.own] == [{}]
    other = knows(ships, without="other@000000000000000b")
    assert "your own prior" in other.origin(ZERO_SHOT)


def test_lessons_without_their_tables_are_left_out(ships):
    remember([0.5, 0.6, 0.7])
    learnt_from_all(ships)
    manifest = own_bundle() / "manifest.json"
    plain = json.loads(manifest.read_text())
    del plain["spaces"][SPACE]["datasets"]
    manifest.write_text(json.dumps(plain))
    other = {"without": "other@000000000000000b"}
    assert "the shipped prior" in knows(ships, **other).origin(ZERO_SHOT)
    learnt_from_all(ships)
    assert "your own prior" in knows(ships, **other).origin(ZERO_SHOT)


def test_a_table_is_known_as_long_as_a_prior_that_learnt_from_it_is_kept(ships):
    remember([0.5, 0.6, 0.7])
    learnt_from_all(ships)
    Memory.of_user().forget(SPACE)
    remember([0.5, 0.6, 0.7], task="other@000000000000000b")
    learnt_from_all(ships, lambda *_, **__: iter(()))  # A new portfolio, and the earlier prior.
    mine = knows(ships, without="mine@000000000000000a")
    assert "the shipped prior" in mine.origin(ZERO_SHOT)
    assert [set(shelf.learnt.portfolios) for shelf in mine.shelves if shelf.own] == [{"r2"}]


@pytest.mark.parametrize("changed", ["seed", "release"])
def test_another_seed_or_release_is_not_up_to_date(known, tmp_path, changed):
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    views = {"r2": by_metric(known, R2)}
    bundle, _ = learn_bundle(views, plan, Bundle.open(tmp_path / "made"))
    if changed == "release":
        by_now, before = (taught_by(views["r2"], 0, release=name) for name in ("", "0.1"))
        manifest = tmp_path / "made" / "manifest.json"
        manifest.write_text(manifest.read_text().replace(by_now, before))
        bundle = Bundle.open(tmp_path / "made")
    else:
        plan = replace(plan, seed=7)
    for note in ("", "up to date"):
        bundle, done = learn_bundle(views, plan, bundle)
        assert [each.note for each in done] == [note, note]


# Learning within a time


def test_a_prior_travels_as_the_bytes_of_its_file(known):
    lessons = [LearningJob(view, "zero-shot") for view in ("few", "all")]
    views = {"all": known, "few": known.only(known.tasks[:2]), "unused": None}
    ended = {each.job: each for each in learn_in_processes(views, lessons)}
    assert set(ended) == set(lessons)
    for lesson, learning in ended.items():
        assert learning.failure == ""
        assert learning.seconds > 0
        want = ZERO_SHOT.learn(views[lesson.view], seed=0)
        assert learning.prior == save_to_bytes(want.save)
        found = read_bytes(learning.prior, ZERO_SHOT.load)
        assert found.configs.dicts() == want.configs.dicts()


def test_lessons_not_learnt_in_time_are_named(known):
    lessons = [LearningJob("all", name) for name in ("zero-shot", "ws-gp")]
    started = time.monotonic()
    for seconds in (0.0, 1e-3):
        ended = list(learn_in_processes({"all": known}, lessons, seconds=seconds))
        assert [each.job for each in ended] == lessons
        assert [each.failure for each in ended] == ["the time was over"] * 2
    assert time.monotonic() - started < 60


def test_lessons_that_are_over_in_time_are_kept(known):
    lessons = [LearningJob("all", name) for name in ("zero-shot", "ws-gp")]
    first, second = learn_in_processes({"all": known}, lessons, site=Slow(), seconds=20)
    assert (first.job, first.failure) == (lessons[0], "")
    assert (second.job, second.failure) == (lessons[1], "the time was over")


def test_a_lesson_that_fails_does_not_stop_the_others(known):
    lessons = [LearningJob("damaged", "zero-shot"), LearningJob("all", "zero-shot")]
    views = {"all": known, "damaged": Damaged()}
    first, second = learn_in_processes(views, lessons, site=InlineSite())
    assert "cannot be decoded" in first.failure
    assert second.failure == ""
    assert read_bytes(second.prior, ZERO_SHOT.load).configs.space == known.space


class Damaged:
    """An experience that does not survive its journey."""

    def save(self, path):
        path.write_bytes(b"damaged")


class Slow:
    """A site where the time is over after one lesson."""

    def pool(self, room, *, workers, limits):
        return SlowExecutor(room)


class SlowExecutor(InlineExecutor):
    lessons = 0

    def results(self, timeout=None):
        assert 0 < timeout <= 20
        self.lessons += 1
        return super().results(timeout) if self.lessons == 1 else []


def test_a_folder_is_whole_whatever_ends_the_learning(known, tmp_path):
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    folder = tmp_path / "made"
    learn_bundle({"r2": by_metric(known, R2)}, plan, Bundle.open(folder), ships=known)
    fewer = known.only(known.tasks[1:])

    def interrupt(*given, **options):
        raise KeyboardInterrupt

    views = {"r2": by_metric(fewer, R2)}
    with pytest.raises(KeyboardInterrupt):
        learn_bundle(views, plan, Bundle.open(folder), ships=fewer, learn=interrupt)
    bundle = Bundle.open(folder)
    learnt = bundle.spaces[SPACE]
    assert learnt.tasks == len(known.tasks) - 1
    assert learnt.portfolios["r2"].content == taught_by(views["r2"], 0)
    for kept in (learnt.definition, learnt.experience, learnt.portfolios["r2"]):
        assert bundle.path(kept).exists()
    assert learnt.priors["zero-shot"]["r2"].content == taught_by(by_metric(known, R2), 0)


# Several programs at one folder


def whole(folder):
    """The opened folder, of which every file is as the manifest says and nothing else is there."""
    bundle = Bundle.open(folder)
    named = [bundle.path(kept) for learnt in bundle.spaces.values() for kept in learnt.files]
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        *(path.name for path in named),
    }
    return bundle


def test_spaces_that_are_learnt_at_the_same_time_are_all_kept(known, tmp_path):
    folder = tmp_path / "made"
    views = {"r2": by_metric(known, R2)}
    opened = Bundle.open(folder)
    for name in ("pipeline-regression", "cash"):
        learn_bundle(views, LearningPlan(name, methods=("zero-shot",), site=InlineSite()), opened)
    learnt = whole(folder).spaces
    assert set(learnt) == {"pipeline-regression", "cash"}
    assert all(set(each.priors) == {"zero-shot"} for each in learnt.values())


def learn_while(act):
    """Return a function that learns priors, and acts before each is saved."""

    def learn(*given, **options):
        for result in learn_in_processes(*given, **options):
            act()
            yield result

    return learn


def test_lessons_of_another_program_are_kept(known, tmp_path):
    folder = tmp_path / "made"
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())

    def other():
        views = {"rmse": by_metric(known, RMSE)}
        learn_bundle(views, plan, Bundle.open(folder))

    views = {"r2": by_metric(known, R2)}
    bundle, _ = learn_bundle(views, plan, Bundle.open(folder), learn=learn_while(other))
    learnt = whole(folder).spaces[SPACE]
    assert bundle.spaces[SPACE] == learnt
    assert set(learnt.priors["zero-shot"]) == set(learnt.portfolios) == {"r2", "rmse"}


@pytest.mark.parametrize("when", ["before anything is kept", "before a prior is kept"])
@pytest.mark.parametrize("relearnt", [False, True])
def test_lessons_forgotten_meanwhile_do_not_come_back(known, when, relearnt):
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    left = by_metric(known.only(known.tasks[1:]), R2)

    def forget():
        forget_lessons(SPACE)
        if relearnt:
            learn_bundle({"r2": left}, LearningPlan(SPACE, methods=()), Bundle.open(own_bundle()))

    opened = Bundle.open(own_bundle())
    learn = learn_while(forget)
    if when == "before anything is kept":
        forget()
        learn = learn_in_processes
    bundle, done = learn_bundle({"r2": by_metric(known, R2)}, plan, opened, learn=learn)
    assert [(each.what, each.note.partition(":")[0]) for each in done] == [
        ("portfolio", "not kept"),
        ("zero-shot", "not kept"),
    ]
    learnt = whole(own_bundle()).spaces
    assert set(learnt) == ({SPACE} if relearnt else set())
    assert all(each.priors == {} and each.tasks == len(left.tasks) for each in learnt.values())
    # What is learnt from now on knows nothing of it, and is kept.
    _, done = learn_bundle({"r2": left}, plan, bundle)
    assert done[-1].note == ""
    assert set(whole(own_bundle()).spaces[SPACE].priors) == {"zero-shot"}


def test_a_space_that_was_learnt_anew_meanwhile_stays_as_it_is(known, tmp_path):
    folder = tmp_path / "made"
    plan = LearningPlan(SPACE, methods=("zero-shot",), site=InlineSite())
    part = restrict_experience(by_metric(known, R2), load_shipped_space(SPACE).build(("rf", "knn")))

    def other():
        learn_bundle({"r2": part}, plan, Bundle.open(folder))

    views = {"r2": by_metric(known, R2)}
    _, done = learn_bundle(views, plan, Bundle.open(folder), learn=learn_while(other))
    assert {each.note.partition(":")[0] for each in done} == {"not kept"}
    assert whole(folder).spaces[SPACE].space == part.space.fingerprint


def test_changes_at_the_same_time_do_not_lose_each_other(tmp_path):
    folder = tmp_path / "made"

    def add(name):
        def with_one_more(now):
            kept = now.keep(f"{name}.json", lambda path: path.write_text(name))
            time.sleep(0.001)
            return now.with_space(name, bundles.SpaceLessons("f", 1, 1, ("r2",), kept))

        Bundle(folder).change(with_one_more)

    names = [f"space{number}" for number in range(20)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, names))
    assert set(whole(folder).spaces) == set(names)


# Folders of knowledge


def test_a_folder_says_what_is_in_it(ships, known):
    plain = json.loads((ships / "manifest.json").read_text())
    learnt = plain["spaces"][SPACE]
    assert (learnt["tasks"], learnt["evaluations"]) == (5, 80)
    assert learnt["about"]["recipe"] == {"folds": 3}
    assert learnt["space"] == known.space.fingerprint
    assert set(learnt["priors"]) == {"zero-shot"}
    assert Bundle.open(ships).spaces[SPACE].metrics == ("r2", "rmse")


@pytest.mark.parametrize("name", [f"{SPACE}.parquet", f"{SPACE}.zero-shot.r2.safetensors"])
def test_altered_files_are_refused(ships, tmp_path, name):
    for file in ships.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    knowledge = FitKnowledge.for_space(
        SPACE, metric="r2", ships=tmp_path, space=load_shipped_space(SPACE).build(ONLY)
    )
    with refuses("damaged-knowledge"):
        knowledge.prior(ZERO_SHOT), knowledge.whole
    (tmp_path / name).unlink()
    with refuses("damaged-knowledge"):
        knowledge.prior(ZERO_SHOT), knowledge.whole


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"format": "foretune-knowledge", "version": 99, "spaces": {}}', "{" * 100_000],
)
def test_a_manifest_of_another_kind_is_refused(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with refuses("damaged-knowledge"):
        Bundle.open(tmp_path)


def test_a_manifest_cannot_name_files_elsewhere(ships):
    bundle = Bundle.open(ships)
    with refuses("damaged-knowledge"):
        bundle.path(bundles.StoredPrior("../secret", "", 0))


# Likeness


def test_datasets_that_are_alike_say_more(known):
    weights = task_similarity(known, {"log_rows": 4.0, "skew": 0.0, "unheard": 1.0})
    assert weights.sum() == pytest.approx(1.0)
    assert (np.diff(weights) <= 0).all()
    assert weights[0] > 2 * weights[-1]
    np.testing.assert_allclose(task_similarity(known, {}), 0.2)


def test_missing_meta_features_take_the_median(known):
    """Of three datasets with 10, 20 and 30 of something, and one that does not say."""
    features = [{"size": 10.0}, {"size": 20.0}, {"size": 30.0}, {"skew": 0.0}]
    table = known.only(known.tasks[:4])
    table = table.with_meta_features(dict(zip(table.tasks, features, strict=True)))
    weights = task_similarity(table, {"size": 20.0})
    assert weights[1] == weights[3] > max(weights[0], weights[2])


def test_seconds_are_those_of_datasets_that_are_alike():
    space = Space.of({"x": (0.0, 1.0)})
    table = Experience.from_matrix(
        space,
        space.encode([{"x": 0.0}, {"x": 1.0}]),
        ["small", "large"],
        [RMSE],
        {"rmse": np.array([[1.0, 2.0], [1.0, 2.0]])},
        seconds=np.array([[1.0, 1.0], [9.0, 9.0]]),
        meta_features={"small": {"rows": 10.0}, "large": {"rows": 99.0}},
    )
    for rows, share in ((9.0, 0), (100.0, 1)):
        weights = task_similarity(table, {"rows": rows})
        assert weights[share] > 0.8
        [seconds] = recommend_configs(table, 1, {"rows": rows}).seconds
        assert seconds == pytest.approx(weights @ [1.0, 9.0])


def test_a_suggestion_follows_the_datasets_that_are_alike(known, ships):
    view = by_metric(known, R2)
    few = recommend_configs(view, 3, {"log_rows": 3.0, "skew": 0.0})
    many = recommend_configs(view, 3, {"log_rows": 9.0, "skew": 0.0})
    assert few.configs.dicts()[0]["estimator"] == "svm"
    assert many.configs.dicts()[0]["estimator"] == "rf"
    np.testing.assert_allclose(few.seconds, 2.0)
    assert (few.places >= 0).all()
    assert few.places[0] < 0.5
    found = knows(ships).suggest(2, {"log_rows": 3.0, "skew": 0.0})
    assert found.configs.dicts()[0]["estimator"] == "svm"


def test_the_place_is_the_mean_share_of_better_pipelines():
    space = Space.of({"x": (0.0, 1.0)})
    table = Experience.from_matrix(
        space,
        space.encode([{"x": x / 4} for x in range(4)]),
        ["a", "b"],
        [RMSE],
        {"rmse": np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 4.0, 3.0, np.nan]])},
    )
    choice = recommend_configs(table, 2, {})
    assert choice.configs.dicts()[0] == {"x": 0.0}
    assert choice.places[0] == 0.0
    assert choice.together.tolist() == [0.0, 0.0]
    assert np.isnan(choice.seconds).all()


# The folder of the package


def shipped_names():
    return sorted(Bundle.open(SHIPPED).spaces)


def test_the_shipped_folder_is_small_and_all_of_it_is_named():
    bundle = Bundle.open(SHIPPED)
    named = {"manifest.json"}
    for learnt in bundle.spaces.values():
        of_priors = [kept for of in learnt.priors.values() for kept in of.values()]
        for kept in (learnt.definition, learnt.experience, *of_priors, *learnt.portfolios.values()):
            named.add(bundle.path(kept).name)
    assert {file.name for file in SHIPPED.iterdir()} == named
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) <= 10 * 2**20


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_knowledge_reaches_the_space_that_ships(name):
    """It may be of an earlier space: boosters had a number of rounds, and networks wider ranges."""
    chosen = load_shipped_space(name)
    estimators = {"pipeline-classification": CLASSIFIERS, "pipeline-regression": REGRESSORS}[name]
    notation = {**chosen.stages, chosen.choice: estimators}
    whole = Space.of(notation, stages=(*chosen.stages, chosen.choice))
    learnt = Bundle.open(SHIPPED).spaces[name]
    assert learnt.metrics == chosen.metrics
    recorded = Experience.open(Bundle.open(SHIPPED).path(learnt.experience))
    known = restrict_experience(recorded, whole, drop_unknown=True)
    networks = sum(each["estimator"] == "mlp" for each in recorded.configs.dicts())
    assert len(known.configs) >= len(recorded.configs) - networks
    gone = set(recorded.space.names) - set(whole.names)
    assert {name.split(":")[-1] for name in gone} <= {"n_estimators", "max_iter"}
    part = whole.encode(whole.sample(50, seed=0).dicts())
    assert len(reencode(part, recorded.space, drop_unknown=True)[1]) == len(part)
    many = sum(len(known.task(task)) >= 200 for task in known.tasks)
    assert many >= {"pipeline-classification": 70, "pipeline-regression": 25}[name]


@pytest.mark.parametrize("name", shipped_names())
def test_no_held_out_dataset_is_in_what_ships(name):
    from foretune_lab.collect.catalogue import group

    bundle = Bundle.open(SHIPPED)
    known = Experience.open(bundle.path(bundle.spaces[name].experience))
    whole = name.removeprefix("pipeline-")
    learnt_from = [*group(f"{whole}-known"), *group(f"{whole}-textbook")]
    assert set(known.tasks) == {entry.name for entry in learnt_from}
    assert not set(known.tasks) & {entry.name for entry in group(f"{whole}-held-out")}


@pytest.mark.parametrize("method", KEPT_METHODS)
@pytest.mark.parametrize("name", shipped_names())
def test_shipped_knowledge_opens_a_search_of_the_whole_and_of_a_part(name, method):
    metric = load_shipped_space(name).metrics[-1]
    for only in ((), ("knn", "rf")):
        space = load_shipped_space(name).build(only)
        knowledge = FitKnowledge.for_space(name, metric=metric, own=False, space=space)
        assert "the shipped prior" in knowledge.origin(METHODS[method])
        prior = knowledge.prior(METHODS[method])
        target = Target(knowledge.space, (metric,))
        optimizer = Optimizer(target, METHODS[method], prior, seed=0)
        # The first trials are a design; the model of a part chooses the seventh.
        for loss in range(7 if only else 2):
            [suggestion] = optimizer.ask()
            assert not only or suggestion.config["estimator"] in only
            optimizer.tell([Told((float(loss),), id=suggestion.id)])
    assert not math.isnan(knowledge.suggest(1, {}).places[0])
