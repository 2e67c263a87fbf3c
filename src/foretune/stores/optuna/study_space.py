"""The space of a define-by-run study, as its ended trials show it.

It has every hyperparameter that a trial asked for, with the union of its ranges. A hyperparameter
that some trials lack is active where another one takes certain values. A later trial that
contradicts such a rule corrects it.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from foretune.space import Space
from foretune.stores.files.condition_inference import MOST_PARENT_VALUES
from foretune.stores.optuna.distribution_union import SeenDistribution, unite_distributions
from foretune.stores.optuna.space_of_trials import infer_space
from foretune.stores.optuna.values import representable

Kind: TypeAlias = tuple[frozenset[str], tuple[float, ...]]
"""The names that a trial has, and the values that may decide about names."""


class KnownSpace:
    """The space of one study, which grows as its trials end."""

    def __init__(self) -> None:
        self._distributions: dict[str, BaseDistribution] = {}
        self._examples: dict[Kind, Mapping[str, Any]] = {}
        """One configuration of each kind: with the same names and the same choices."""
        self._space: Space | None = None
        self._grown = False

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The hyperparameters as Optuna's distributions."""
        return representable(self._distributions)

    def learn(self, trial: FrozenTrial) -> None:
        """Take in an ended trial. A failed one may not have asked for everything."""
        if trial.state is TrialState.FAIL:
            return
        for name, distribution in trial.distributions.items():
            known = self._distributions.get(name)
            if known != distribution:
                both = [known, distribution] if known is not None else [distribution]
                self._distributions[name] = unite_distributions(
                    SeenDistribution("", name, one) for one in both
                )[name]
                self._grown = True
        kind = _kind(trial)
        if kind not in self._examples:
            self._examples[kind] = trial.params
            # While all trials have the same names, there are no conditions to find.
            self._grown |= len({names for names, _ in self._examples}) > 1

    def space(self) -> Space | None:
        """Return the space so far; None if there is nothing yet to choose."""
        if self._grown:
            self._space, self._grown = self._make_space(), False
        return self._space

    def _make_space(self) -> Space | None:
        distributions = self.distributions
        if not distributions:
            return None
        return infer_space(distributions, list(self._examples.values()))[0]


def _kind(trial: FrozenTrial) -> Kind:
    """Return what decides which other hyperparameters a program asks for."""
    choices = tuple(
        distribution.to_internal_repr(trial.params[name])
        for name, distribution in sorted(trial.distributions.items())
        if _may_decide(distribution)
    )
    return frozenset(trial.params), choices


def _may_decide(distribution: BaseDistribution) -> bool:
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step < MOST_PARENT_VALUES
    return isinstance(distribution, CategoricalDistribution)
