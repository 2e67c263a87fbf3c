"""The stages of a search: a start list, then a design, then the model.

A trial belongs to the design or to the model by where the earlier ones came from, not by how many
there are: where a search chooses among given configurations, it never meets its start list.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np

from foretune.methods.contracts import Prior, Target
from foretune.search.candidates import nearest
from foretune.search.method_entry import Design
from foretune.space import Encoded
from foretune.space.algorithms import Algorithms


class SearchStage(Enum):
    """What chooses a trial."""

    START = auto()
    DESIGN = auto()
    MODEL = auto()


@dataclass(frozen=True, slots=True)
class Stages:
    """What comes before the model."""

    start: Encoded
    """Configurations to try first, in order, each of them once."""
    design: Design
    """What comes next; its trials are counted in all, not of each algorithm."""
    enough: int | None = None
    """After so many different trials, wherever they came from, the start list has nothing to add;
    None where all of it is to be tried. Else whoever goes on with another seed, or joins others,
    would spread trials over a space that is known by then."""

    @staticmethod
    def plan(design: Design, prior: Prior, target: Target, start: Encoded | None) -> "Stages":
        """A given start stands in for what the prior opens with, and for a design that ends."""
        enough = None
        if start is None:
            start = _each_once(_in_pool(prior.opening(target), target))
            enough = len(start) if prior.spreads else None
        elif len(start) and design.trials is not None:
            design = replace(design, trials=0)
        return Stages(start, _in_all(design, target), enough)

    def waiting(self, tried: Encoded) -> Encoded:
        """What is left of the start list."""
        left = _without(self.start, tried)
        return left.take([]) if len(left) and self._is_enough(tried) else left

    def _is_enough(self, tried: Encoded) -> bool:
        if self.enough is None or len(tried) < self.enough:
            return False
        return len(tried.first_occurrences()) >= self.enough

    def without(self, configs: Encoded) -> "Stages":
        """The stages with a start list that lacks `configs`."""
        return replace(self, start=_without(self.start, configs))

    def after(self, tried: Encoded, *, starting: bool) -> SearchStage:
        """The stage of the trial that comes after `tried`.

        starting: whether it may come from the start list.
        """
        if starting and len(self.waiting(tried)):
            return SearchStage.START
        beyond_start = np.count_nonzero(~tried.isin(self.start))
        if self.design.trials is None or beyond_start < self.design.trials:
            return SearchStage.DESIGN
        return SearchStage.MODEL


def reserve(prior: Prior, target: Target) -> Encoded:
    """What the prior would go on with while no trial has told anything, each once, in order."""
    return _each_once(_in_pool(prior.reserve(target), target))


def _in_pool(wanted: Encoded, target: Target) -> Encoded:
    """The nearest members where the target has a pool."""
    if target.pool is None or len(wanted) == 0:
        return wanted
    return target.pool.take(nearest(wanted, target.pool))


def _without(configs: Encoded, others: Encoded) -> Encoded:
    return configs.take(np.flatnonzero(~configs.isin(others)))


def _each_once(configs: Encoded) -> Encoded:
    return configs.take(configs.first_occurrences()) if len(configs) else configs


def _in_all(design: Design, target: Target) -> Design:
    """The design with so many trials as it has on the target, where it has so many of each."""
    if design.trials is None or design.how != "per-algorithm":
        return design
    return replace(design, trials=design.trials * len(Algorithms.of(target.space)))
