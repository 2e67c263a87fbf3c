"""The stages of a search: a start list, then a design, then the model.

The origin of the earlier trials decides the stage of the next one, not their number. A search that
chooses among given configurations never uses its start list.
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
    """The part of the search that chooses a trial."""

    START = auto()
    DESIGN = auto()
    MODEL = auto()


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages before the model."""

    start: Encoded
    """Configurations to try first, in order, each of them once."""
    design: Design
    """The design that follows. Its number of trials is the total, not that of each algorithm."""
    enough: int | None = None
    """After this number of different trials from any origin, the rest of the start list is skipped;
    None if all of it must be tried. A search that goes on with another seed, or joins others, then
    does not spread trials over a space that is already known."""

    @staticmethod
    def plan(design: Design, prior: Prior, target: Target, start: Encoded | None) -> "Stages":
        """Plan the stages. A given start replaces the prior's opening, and a design that ends."""
        enough = None
        if start is None:
            start = _each_once(_in_pool(prior.opening(target), target))
            enough = len(start) if prior.spreads else None
        elif len(start) and design.trials is not None:
            design = replace(design, trials=0)
        return Stages(start, _in_all(design, target), enough)

    def waiting(self, tried: Encoded) -> Encoded:
        """Return what is left of the start list."""
        left = _without(self.start, tried)
        return left.take([]) if len(left) and self._is_enough(tried) else left

    def _is_enough(self, tried: Encoded) -> bool:
        if self.enough is None or len(tried) < self.enough:
            return False
        return len(tried.first_occurrences()) >= self.enough

    def without(self, configs: Encoded) -> "Stages":
        """Return the stages with a start list without `configs`."""
        return replace(self, start=_without(self.start, configs))

    def after(self, tried: Encoded, *, starting: bool) -> SearchStage:
        """Return the stage of the trial that comes after `tried`.

        starting: allow the start list.
        """
        if starting and len(self.waiting(tried)):
            return SearchStage.START
        beyond_start = np.count_nonzero(~tried.isin(self.start))
        if self.design.trials is None or beyond_start < self.design.trials:
            return SearchStage.DESIGN
        return SearchStage.MODEL


def reserve(prior: Prior, target: Target) -> Encoded:
    """Return what the prior tries after its opening while every trial fails."""
    return _each_once(_in_pool(prior.reserve(target), target))


def _in_pool(wanted: Encoded, target: Target) -> Encoded:
    """Return the nearest members of the pool, if the target has one."""
    if target.pool is None or len(wanted) == 0:
        return wanted
    return target.pool.take(nearest(wanted, target.pool))


def _without(configs: Encoded, others: Encoded) -> Encoded:
    return configs.take(np.flatnonzero(~configs.isin(others)))


def _each_once(configs: Encoded) -> Encoded:
    return configs.take(configs.first_occurrences()) if len(configs) else configs


def _in_all(design: Design, target: Target) -> Design:
    """Return the design with its total number of trials, if it counts those of each algorithm."""
    if design.trials is None or design.how != "per-algorithm":
        return design
    return replace(design, trials=design.trials * len(Algorithms.of(target.space)))
