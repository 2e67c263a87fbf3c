"""What a search in a study starts from: a method, a space, and a prior from past studies."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from foretune.errors import ForetuneWarning, MethodError, UsageError
from foretune.experience import Experience
from foretune.methods.contracts import Prior, Target
from foretune.search import Method, Optimizer, method
from foretune.search.prior_cache import prior_of
from foretune.space import Space
from foretune.stores.optuna.distributions import from_distributions
from foretune.stores.optuna.past_studies import PastStudies
from foretune.stores.optuna.study_space import KnownSpace

WITH_EXPERIENCE, WITHOUT_EXPERIENCE = "gcp-prior", "auto"
"""The default methods with and without past studies. `auto` would learn for minutes."""
WITHOUT_NETWORKS = "factors"
"""Replaces the first one if JAX is missing, which it needs to learn."""
FEWEST_STUDIES = 3
"""The default method learns only if there are at least this many past studies."""


@dataclass
class SamplerKnowledge:
    """A method and what it learns from: past studies, a ready prior, or nothing."""

    name: str | None
    """The name of the method; None for the default one."""
    past: PastStudies | None = None
    prior: Prior | None = None
    space: Space | None = None
    """The space that the user gave; None: it is inferred from the trials."""
    was_given: bool = False
    """Whether the user named the past studies. Then a warning says if they teach nothing."""
    _priors: dict[tuple[str, str], Prior] = field(default_factory=dict)
    _experiences: dict[str, Experience | None] = field(default_factory=dict)
    """{fingerprint of a space: the past studies in that space}"""

    def space_for(self, known: KnownSpace) -> Space | None:
        """Return the given space, or the usual past one if it fits, or that of the trials."""
        if self.space is not None:
            return self.space
        usual = None if self.past is None else self.past.usual_space
        if usual is not None and fits(usual, known):
            return usual
        return known.space()

    def first_guess(self) -> dict[str, Any]:
        """Return a configuration for a study whose space is unknown. It may be empty."""
        learns = self.name is None or method(self.name).transfers
        return self.past.typical_best if learns and self.past is not None else {}

    def optimizer(self, space: Space, objectives: int, seed: int) -> Optimizer:
        """Return a new optimiser."""
        chosen, prior = self._method_and_prior(space)
        if objectives > 1 and not chosen.several_objectives:
            raise MethodError(
                f"the method '{chosen.name}' has one objective, but the study has {objectives}: "
                "choose another method",
                rule="one-objective-only",
                field="method",
                value=chosen.name,
            )
        names = tuple(f"loss_{number}" for number in range(objectives))
        return Optimizer(Target(space, names), chosen, prior, seed=seed)

    def _method_and_prior(self, space: Space) -> tuple[Method, Prior]:
        if self.prior is not None:
            return method(self.name or WITH_EXPERIENCE), self.prior
        if self.name is not None:
            chosen = method(self.name)
            return chosen, self._learn(chosen, space)
        lacking = self._why_nothing_is_learnt(space)
        if lacking is None:
            return usual_method(), self._learn(usual_method(), space)
        if self.was_given:
            warnings.warn(ForetuneWarning(lacking, rule="nothing-learnt"), stacklevel=2)
        from_nothing = method(WITHOUT_EXPERIENCE)
        return from_nothing, from_nothing.learn(None, seed=0)

    def _why_nothing_is_learnt(self, space: Space) -> str | None:
        """Return why the default method learns nothing from the past; None if it does."""
        if self.past is None:
            return "nothing is learnt from past studies: there are none"
        experience = self._experience_in(space)
        studies = 0 if experience is None else len(experience.tasks)
        if studies >= FEWEST_STUDIES:
            return None
        return (
            f"nothing is learnt from past studies: '{usual_method().name}' needs {FEWEST_STUDIES} "
            f"that fit this study's space, but there are {studies}: name a method to learn from "
            "fewer, such as 'auto'"
        )

    def _learn(self, chosen: Method, space: Space) -> Prior:
        """Return the prior for one space, from memory, from disk, or learnt now."""
        key = (chosen.name, space.fingerprint)
        if key not in self._priors:
            self._priors[key] = self._from_past(chosen, space)
        return self._priors[key]

    def _experience_in(self, space: Space) -> Experience | None:
        """Return the past in one space; None if no study fits."""
        if space.fingerprint not in self._experiences:
            found = None if self.past is None else self.past.experience_in(space)
            self._experiences[space.fingerprint] = found
        return self._experiences[space.fingerprint]

    def _from_past(self, chosen: Method, space: Space) -> Prior:
        if not chosen.transfers:
            return chosen.learn(None, seed=0)
        experience = self._experience_in(space)
        if experience is None:
            if not chosen.needs_experience:
                return chosen.learn(None, seed=0)
            raise MethodError(
                f"the method '{chosen.name}' learns from past studies, but none was found that "
                "shares half of this study's hyperparameters: give other experience, or choose a "
                "method that can start from nothing, such as 'auto'",
                rule="no-past-study-fits",
                field="method",
                value=chosen.name,
            )
        return prior_of(chosen, experience)


def usual_method(find: Callable[[str], object] = find_spec) -> Method:
    """Return the default method that learns from past studies.

    find: returns None if a package is missing.
    """
    return method(WITHOUT_NETWORKS if find("jax") is None else WITH_EXPERIENCE)


def prior_space(prior: Prior) -> Space:
    """Return the space that a prior was learnt in."""
    space = getattr(prior, "space", None)
    if not isinstance(space, Space):
        raise UsageError(
            f"a prior is used in the space it was learnt on, but a {type(prior).__name__} does not "
            "say which: give it as `space`",
            rule="prior-without-space",
            field="space",
        )
    return space


def fits(usual: Space, known: KnownSpace) -> bool:
    """Return whether all that the trials have asked for lies in the usual space.

    They may not have asked yet for hyperparameters that depend on others.
    """
    distributions = known.distributions
    if not distributions:
        return True
    expected = {p.name: p for p in usual.parameters}
    own = Space.of(from_distributions(distributions, rounded_later=True))
    always = {
        p.name
        for p, condition in zip(usual.parameters, usual.rules.conditions, strict=True)
        if condition is None and p.size > 1
    }
    return always <= set(own.names) <= set(expected) and all(
        (p.kind, p.low, p.high, p.log, p.choices) == (q.kind, q.low, q.high, q.log, q.choices)
        for p, q in ((p, expected[p.name]) for p in own.parameters)
    )
