"""What was learnt before is not learnt again, and nothing else is taken for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Prior, Target
from foretune.search import METHODS, Optimizer
from foretune.search.method_entry import Method
from foretune.search.prior_cache import forget_priors, learner_here, learnt_prior, taught_by
from foretune.testing.problems import problem

ZERO_SHOT = METHODS["zero-shot"]


@pytest.fixture
def past() -> Experience:
    return problem("flat").experience


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of methods, each time that one learns from past tasks."""
    names: list[str] = []
    learn = Method.learn

    def counted(self: Method, experience: Experience | None, **how: object) -> Prior:
        if experience is not None:
            names.append(self.name)
        return learn(self, experience, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Method, "learn", counted)
    return names


def test_the_same_is_learnt_once(past: Experience, learnt: list[str], tmp_path: Path) -> None:
    first = learnt_prior(ZERO_SHOT, past)
    past.save(tmp_path / "past.parquet")
    again = learnt_prior(ZERO_SHOT, Experience.open(tmp_path / "past.parquet"))
    target = Target(past.space)
    assert again.opening(target) == first.opening(target)
    assert learnt == ["zero-shot"]


def test_whatever_changes_what_is_learnt_is_learnt_anew(
    past: Experience, learnt: list[str]
) -> None:
    learnt_prior(ZERO_SHOT, past)
    learnt_prior(METHODS["ws-gp"], past)
    learnt_prior(ZERO_SHOT, past, seed=1)
    learnt_prior(ZERO_SHOT, past.only(past.tasks[1:]))
    turned = Metric(past.metrics[0].name, Direction.MAX)
    learnt_prior(ZERO_SHOT, replace(past, metrics=(turned,)))
    assert len(learnt) == 5
    assert taught_by(past, 0, release="99") != taught_by(past, 0) == taught_by(past, 0)


def test_methods_without_past_tasks_keep_nothing(past: Experience, tmp_path: Path) -> None:
    learnt_prior(METHODS["gp"], past)
    learnt_prior(METHODS["auto"], None)
    assert not (tmp_path / "cache").exists()


def test_forgotten_lessons_are_learnt_again(past: Experience, learnt: list[str]) -> None:
    learnt_prior(ZERO_SHOT, past)
    forget_priors()
    learnt_prior(ZERO_SHOT, past)
    assert len(learnt) == 2


def test_a_method_of_ones_own_learns_each_time(past: Experience, learnt: list[str]) -> None:
    """Its name may be that of another, and its code may have changed since."""
    learnt_prior(ZERO_SHOT, past)
    same_name = replace(ZERO_SHOT, acquisition="ucb")
    new_name = replace(ZERO_SHOT, name="mine")
    for method in (same_name, new_name, new_name):
        learnt_prior(method, past)
    assert learnt == ["zero-shot", "zero-shot", "mine", "mine"]


def test_priors_that_were_learnt_without_jax_have_another_name() -> None:
    """`auto` has better experts with JAX."""
    auto = METHODS["auto"]
    assert learner_here(auto, has_jax=True) == learner_here(auto) == "auto"
    assert learner_here(auto, has_jax=False) == "auto without JAX"


def test_an_optimiser_in_a_line_learns_once(past: Experience, learnt: list[str]) -> None:
    first, again = (Optimizer.of(experience=past, method="zero-shot", seed=3) for _ in range(2))
    assert first.ask(2) == again.ask(2)
    assert learnt == ["zero-shot"]
