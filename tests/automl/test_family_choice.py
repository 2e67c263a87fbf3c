"""Families of estimators compete for the time of a search."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from foretune.automl.family_choice import (
    CEILING,
    FLOOR,
    FamilyContest,
    FamilyOptimizer,
    FamilyRecord,
    choose_family,
    record_families,
    share_of_families,
)
from foretune.automl.knowledge.family_opening import MOST_ROWS, families_of, open_families
from foretune.automl.plan import FitOptions, FitPlan, make_plan
from foretune.automl.trial_search import StartKnowledge, let_families_compete
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.methods.contracts import Target
from foretune.search.registry import METHODS
from foretune.search.suggestions import Told
from foretune.tables.target import Task

from .samples import mixed_table

FAMILIES = ("knn", "lda", "rf", "logistic")


@pytest.fixture(scope="module")
def plan() -> FitPlan:
    return make_plan(mixed_table(Task.CLASSIFICATION), FitOptions(only=FAMILIES))


def _record(best: float, stale: int = 0, seconds: float = 1.0) -> FamilyRecord:
    return FamilyRecord(1, best, stale, seconds)


def test_shares_follow_the_losses_within_a_floor_and_a_ceiling() -> None:
    records = {"a": _record(1.0), "b": _record(1.1), "c": _record(1.3), "d": _record(9.0)}
    shares = share_of_families(records)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["a"] > shares["b"] > shares["c"] > shares["d"] > FLOOR / 2
    alone = share_of_families({"a": _record(1.0), "b": _record(99.0), "c": _record(99.0)})
    assert alone["a"] < 1.0 - 1.5 * FLOOR
    assert max(shares.values()) <= CEILING / sum([CEILING, FLOOR, FLOOR, FLOOR])


def test_a_family_that_stays_behind_or_fails_has_less() -> None:
    fresh = share_of_families({"a": _record(1.0), "b": _record(1.1), "c": _record(1.2)})
    stale = share_of_families({"a": _record(1.0, stale=9), "b": _record(1.1), "c": _record(1.2)})
    assert stale["a"] < fresh["a"]
    failed = {"a": _record(1.0), "b": FamilyRecord(2, math.inf, 0, 2.0)}
    assert share_of_families(failed) == {"a": 1.0, "b": 0.0}


def test_the_family_that_lacks_most_seconds_goes_on() -> None:
    equal = {"a": _record(1.0, seconds=10.0), "b": _record(1.0, seconds=1.0)}
    assert choose_family(equal) == "b"
    assert choose_family({"a": _record(1.0, seconds=1.0), "b": _record(1.0, seconds=10.0)}) == "a"


def test_records_count_running_trials_and_failures(plan: FitPlan) -> None:
    def trial(number: int, status: Status, loss: float, seconds: float = math.nan) -> Trial:
        values = {"log_loss": loss} if math.isfinite(loss) else {}
        return Trial(number, {"estimator": "knn"}, status, values, seconds)

    trials = [
        trial(0, Status.DONE, 0.5, 2.0),
        trial(1, Status.DONE, 0.7, 4.0),
        trial(2, Status.FAILED, math.inf, 3.0),
        trial(3, Status.RUNNING, math.inf),
    ]
    found = record_families(trials, ("knn", "lda"), "estimator", plan.metric)
    assert found == {"knn": FamilyRecord(4, 0.5, 2, 12.0), "lda": FamilyRecord()}


def test_the_opening_has_one_configuration_of_each_family_and_the_quickest_first(
    plan: FitPlan,
) -> None:
    first = open_families(plan, None, {})
    assert first is not None
    assert [config["estimator"] for config in first.dicts()] == ["logistic", "lda", "knn", "rf"]
    assert open_families(make_plan(plan.table, FitOptions(only=("knn",))), None, {}) is None


def test_slow_families_leave_large_tables_to_others(plan: FitPlan) -> None:
    many = plan.table.rows(np.arange(MOST_ROWS["svm"] + 1) % len(plan.table))
    options = FitOptions(only=("svm", "logistic", "lda"))
    assert "svm" in families_of(make_plan(plan.table, options))
    assert "svm" not in families_of(make_plan(many, options))
    alone = make_plan(many, FitOptions(only=("svm",)))
    assert families_of(alone) == ("svm",)


def test_other_methods_choose_alone(plan: FitPlan) -> None:
    known = StartKnowledge(METHODS["random"].learn(None, seed=0), None, {})
    assert let_families_compete(known, plan, FitOptions(method="random"), None) is known
    assert let_families_compete(known, plan, FitOptions(), None).families == families_of(plan)


def test_a_search_tries_all_families_repeats_itself_and_tries_nothing_twice(
    plan: FitPlan,
) -> None:
    """One family is far better; the others go on all the same."""
    method = METHODS["random"]
    first = open_families(plan, None, {})
    assert first is not None

    def search(count: int) -> list[dict[str, object]]:
        trials: list[Trial] = []
        contest = FamilyContest(plan, families_of(plan), lambda: trials)
        prior = method.learn(None, seed=0)
        target = Target(plan.space, ("log_loss",))
        optimizer = FamilyOptimizer(contest, target, method, prior, seed=0, start=first)
        for number in range(count):
            [asked] = optimizer.ask()
            loss = 0.1 if asked.config["estimator"] == "knn" else 0.5
            trials.append(Trial(number, asked.config, Status.DONE, {"log_loss": loss}, 1.0))
            optimizer.tell([Told(loss, id=asked.id)])
        return [trial.config for trial in trials]

    found = search(16)
    assert found[: len(first)] == first.dicts()
    assert found == search(16)
    assert len({repr(sorted(config.items())) for config in found}) == 16
    counts = Counter(str(config["estimator"]) for config in found)
    assert set(counts) == set(FAMILIES)
    assert counts.most_common(1)[0][0] == "knn"
    assert counts["knn"] <= 12


def test_the_opening_goes_before_what_similar_datasets_suggest(plan: FitPlan) -> None:
    more = plan.space.sample(3, seed=1)
    known = StartKnowledge(METHODS["auto"].learn(None, seed=0), more, {})
    found = let_families_compete(known, plan, FitOptions(), None)
    assert found.start is not None
    assert found.start.dicts()[4:] == more.dicts()
    assert replace(found, start=more, families=()) == known


def test_without_a_time_limit_seconds_do_not_count(plan: FitPlan) -> None:
    def trials(knn: float) -> list[Trial]:
        return [
            Trial(number, {"estimator": name}, Status.DONE, {"log_loss": 0.5}, seconds)
            for number, (name, seconds) in enumerate([("knn", knn), ("lda", 1.0), ("lda", 1.0)])
        ]

    for knn in (0.1, 100.0):
        contest = FamilyContest(plan, ("knn", "lda"), lambda knn=knn: trials(knn), False)
        assert contest.choose() == "knn"
    slow = FamilyContest(plan, ("knn", "lda"), lambda: trials(100.0))
    assert slow.choose() == "lda"
