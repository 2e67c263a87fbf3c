"""Many past tasks: what is learnt before the first suggestion, what later, what never again."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.experience import Experience, Metric
from foretune.methods.auto.learn import AutoLearner
from foretune.methods.contracts import Learner, Prior
from foretune.methods.past_data import draw_by_name
from foretune.methods.zero_shot import adaptive
from foretune.methods.zero_shot.adaptive import AdaptiveLearner, AdaptivePrior
from foretune.methods.zero_shot.quick_opening import spread_by_rank
from foretune.methods.zero_shot.table import loss_table, shares_configurations
from foretune.search.early_opening import EarlyPrior
from foretune.search.method_entry import Design, Method
from foretune.search.optimizer import Optimizer
from foretune.search.prior_ancestry import fingerprints_of_tasks, learnt_on_top
from foretune.search.prior_cache import learnt_prior, prior_of
from foretune.search.registry import METHODS
from foretune.search.suggestions import Told
from foretune.space import Space
from tests.methods.doubles import PartLearner

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": ["u", "v"]})
FEW = 6
EACH = 12


def experience_of(tasks: int, *, shared: bool = False) -> Experience:
    """Bowls around nearly the same place."""
    names = [f"task {number}" for number in range(tasks)]
    configs = SPACE.sample(EACH if shared else EACH * tasks, seed=3)
    index = np.tile(np.arange(EACH), tasks) if shared else np.arange(EACH * tasks)
    of = np.repeat(np.arange(tasks), EACH)
    losses = np.square(configs.x[index][:, :2] - 0.4 - 0.01 * (of[:, None] % 5)).sum(axis=1)
    return Experience.build(SPACE, [Metric("loss")], names, of, configs, index, losses)


LEARNT: list[int] = []
"""The numbers of tasks, each time that the tiny method learns."""


@dataclass(frozen=True)
class CountedLearner(AdaptiveLearner):
    """A learner for few tasks that notes each time it learns."""

    most_forests: int = FEW

    def learn(self, experience: Experience | None, **how) -> AdaptivePrior:
        assert experience is not None
        LEARNT.append(len(experience.tasks))
        return super().learn(experience, **how)


def tiny_auto() -> AutoLearner:
    """`auto` without networks."""
    return AutoLearner(
        taught={"adaptive-portfolio": CountedLearner},
        from_nothing={"gcp-smooth": METHODS["gcp-smooth"].learner},
        lister="adaptive-portfolio",
    )


TINY = Method("tiny", "tiny auto", tiny_auto, Design("random", 0), "own", uses_experience=True)


@pytest.fixture(autouse=True)
def nothing_learnt() -> None:
    LEARNT.clear()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Method]:
    """The tiny method as one that ships."""
    monkeypatch.setattr("foretune.search.prior_cache.SHIPPED", frozenset({"tiny"}))
    METHODS["tiny"] = TINY
    yield TINY
    del METHODS["tiny"]


def played(optimizer: Optimizer, trials: int) -> list[dict]:
    found = []
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        found.append(suggestion.config)
        loss = (suggestion.config["a"] - 0.3) ** 2 + suggestion.config["b"]
        optimizer.tell([Told((loss,), id=suggestion.id)])
    return found


def test_a_draw_by_name_changes_by_one_task_when_one_is_added() -> None:
    names = [f"task {number}" for number in range(300)]
    before = {names[place] for place in draw_by_name(names, 50, 7)}
    more = ["new", *names]
    after = {more[place] for place in draw_by_name(more, 50, 7)}
    assert len(before) == len(after) == 50
    assert len(before - after) <= 1
    assert {names[place] for place in draw_by_name(names, 50, 8)} != before
    assert draw_by_name(names[:50], 50, 7).tolist() == list(range(50))


def test_the_best_and_every_rank_are_read() -> None:
    z = np.random.default_rng(0).permutation(1000).astype(float)
    kept = z[spread_by_rank(z, 100, 10)]
    assert sorted(kept[:10]) == list(range(10))
    assert len(set(kept)) == 100
    assert kept.max() == 999.0
    assert np.diff(np.sort(kept)[10:]).max() <= 12.0
    assert spread_by_rank(z[:100], 100, 10).tolist() == np.argsort(z[:100]).tolist()


@pytest.mark.parametrize("shared", [False, True])
def test_whether_configurations_are_shared_is_known_without_the_table(shared: bool) -> None:
    experience = experience_of(5, shared=shared)
    assert shares_configurations(experience) is loss_table(experience).has_common_configs is shared


def test_few_tasks_open_with_what_was_learnt() -> None:
    experience = experience_of(FEW)
    assert tiny_auto().early_opening(experience, seed=0) is None
    assert not isinstance(prior_of(TINY, experience), EarlyPrior)


@pytest.mark.parametrize("shared", [False, True])
def test_the_early_opening_is_that_of_the_learnt_prior(shared: bool) -> None:
    experience = experience_of(3 * FEW, shared=shared)
    early = tiny_auto().early_opening(experience, seed=0)
    learnt = tiny_auto().learn(experience, seed=0, progress=SILENT)
    assert early is not None
    assert early == learnt.first
    assert len(early) == 3


def test_nothing_is_learnt_before_the_opening_ends() -> None:
    optimizer = Optimizer.of(SPACE, experience_of(3 * FEW), method=TINY)
    played(optimizer, 3)
    assert not LEARNT
    played(optimizer, 1)
    assert len(LEARNT) == 1


def test_learning_early_late_or_after_a_restart_changes_no_suggestion() -> None:
    experience = experience_of(3 * FEW)
    late = Optimizer.of(SPACE, experience, method=TINY, seed=4)
    soon = Optimizer.of(SPACE, experience, method=TINY, seed=4)
    soon.finish_learning()
    trials = played(late, 7)
    assert played(soon, 7) == trials
    again = Optimizer.of(SPACE, experience, method=TINY, seed=4)
    again.tell([Told((t["a"],), config=t) for t in trials])
    late_again = Optimizer.of(SPACE, experience, method=TINY, seed=4)
    late_again.finish_learning()
    late_again.tell([Told((t["a"],), config=t) for t in trials])
    assert again.ask()[0].config == late_again.ask()[0].config


def test_an_explanation_does_not_wait_for_learning() -> None:
    optimizer = Optimizer.of(SPACE, experience_of(3 * FEW), method=TINY)
    played(optimizer, 2)
    assert optimizer.explain() == ""
    assert not LEARNT


def test_an_optimiser_knows_when_its_next_suggestion_must_wait() -> None:
    optimizer = Optimizer.of(SPACE, experience_of(3 * FEW), method=TINY)
    assert not optimizer.must_learn
    optimizer.ask(2)
    assert not optimizer.must_learn
    optimizer.ask()
    assert optimizer.must_learn
    optimizer.finish_learning()
    assert not optimizer.must_learn
    assert not Optimizer.of(SPACE, method="random").must_learn


def test_some_of_many_tasks_with_equal_configurations_are_read() -> None:
    whole = experience_of(3 * FEW, shared=True)
    some = [whole.tasks[place] for place in draw_by_name(whole.tasks, FEW, 5)]
    read = AdaptiveLearner(most_tasks=FEW).learn(whole, seed=5, progress=SILENT)
    expected = AdaptiveLearner().learn(whole.only(some), seed=5, progress=SILENT)
    assert read.scores.shape[0] == FEW
    assert np.array_equal(read.scores, expected.scores)
    assert read.configs == expected.configs


def test_progress_is_told_of_every_task() -> None:
    events: list[tuple[str, object]] = []

    class Heard:
        def start(self, what: str, total: int | None) -> None:
            events.append((what, total))

        def step(self, n: int = 1, note: str = "") -> None:
            events.append(("step", n))

        def stop(self) -> None:
            events.append(("stop", None))

    optimizer = Optimizer.of(SPACE, experience_of(3 * FEW), method=TINY, progress=Heard())
    optimizer.finish_learning()
    begins = events.index(("predicting what was not evaluated", FEW))
    assert events[begins + 1 :].count(("step", 1)) >= FEW


def test_a_task_that_is_not_read_costs_no_forest(
    kept: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = []
    forest = adaptive.quick_forest
    monkeypatch.setattr(adaptive, "quick_forest", lambda *a: grown.append(1) or forest(*a))
    larger = experience_of(3 * FEW + 1)
    last = len(larger.tasks) - 1
    drawn, unread = (
        next(s for s in range(99) if (last in draw_by_name(larger.tasks, FEW, s)) is read)
        for read in (True, False)
    )
    before = larger.only(larger.tasks[:-1])
    learnt_prior(kept, before, seed=unread)
    assert len(grown) == FEW
    learnt_prior(kept, larger, seed=unread)
    assert len(grown) == FEW
    learnt_prior(kept, before, seed=drawn)
    learnt_prior(kept, larger, seed=drawn)
    assert len(grown) == 3 * FEW


def test_a_finished_part_survives_an_interruption(kept: Method) -> None:
    class Interrupted(PartLearner):
        def learn(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

        load = learn

    def stopped() -> AutoLearner:
        learner = tiny_auto()
        return AutoLearner(
            {**learner.taught, "slow": Interrupted}, learner.from_nothing, learner.lister
        )

    method = Method("tiny", "", stopped, Design("random", 0), "own", uses_experience=True)
    METHODS["tiny"] = method
    experience = experience_of(3 * FEW)
    with pytest.raises(KeyboardInterrupt):
        learnt_prior(method, experience)
    METHODS["tiny"] = kept
    learnt_prior(kept, experience)
    assert len(LEARNT) == 1


def test_the_fingerprint_of_a_task_follows_from_its_own_evaluations() -> None:
    small, large = experience_of(4), experience_of(5)
    before, after = fingerprints_of_tasks(small.only(small.tasks)), fingerprints_of_tasks(large)
    part = fingerprints_of_tasks(large.only(large.tasks[:4]))
    assert part == {name: after[name] for name in part}
    assert len(set(after.values())) == 5
    assert set(before) < set(after)


class Counting(Learner):
    """A learner that can go on, and whose prior is the number of trainings."""

    can_continue = True

    def __init__(self) -> None:
        self.calls: list[str] = []

    def learn(self, experience: Experience, **_: object) -> "Remembering":
        self.calls.append(f"anew {len(experience.tasks)}")
        return Remembering()

    def continue_from(self, earlier: object, experience: Experience, **_: object) -> "Remembering":
        assert isinstance(earlier, Remembering)
        self.calls.append(f"on {len(experience.tasks)}")
        return Remembering()

    def load(self, path) -> "Remembering":
        assert path.read_bytes() == b"prior"
        return Remembering()


class Remembering(Prior):
    def surrogate(self, target: object) -> None: ...

    def save(self, path) -> None:
        path.write_bytes(b"prior")


def test_one_more_task_goes_on_and_others_begin_anew() -> None:
    whole, learner = experience_of(45), Counting()

    def learn(first: int, last: int) -> str:
        part = whole.only(whole.tasks[first:last])
        learnt_on_top("c", learner, part, seed=0, progress=SILENT, least_tasks=20)
        return learner.calls[-1]

    assert learn(0, 19) == "anew 19"
    assert learn(0, 20) == "anew 20"
    assert learn(0, 21) == "on 21"
    assert learn(0, 22) == "on 22"
    assert learn(0, 24) == "anew 24", "two of 24 are more than one in twenty"
    assert learn(10, 34) == "anew 24"
    for last in range(35, 45):
        learn(10, last)
    assert learner.calls[-1] == "on 34"
    assert "anew" in learn(8, 45), "the tasks have grown by half"
