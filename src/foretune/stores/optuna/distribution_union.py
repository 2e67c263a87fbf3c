"""The union of Optuna's distributions over many trials and studies."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from foretune.errors import ExperienceError
from foretune.stores.files.plain_values import as_choice

if TYPE_CHECKING:
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    Number: TypeAlias = FloatDistribution | IntDistribution


@dataclass(frozen=True)
class SeenDistribution:
    """A distribution, and where it was first met."""

    study: str
    parameter: str
    distribution: "BaseDistribution"


def unite_distributions(seen: Iterable[SeenDistribution]) -> "dict[str, BaseDistribution]":
    """Return for each hyperparameter one distribution that covers all that it was drawn from.

    Ranges widen, and choices add up. A mix of integers and floats becomes a float. Choices that are
    lists become tuples, because databases keep tuples as lists.
    """
    found: dict[str, BaseDistribution] = {}
    for one in map(_with_tuples, seen):
        known = found.get(one.parameter)
        if known is None or known == one.distribution:
            found[one.parameter] = one.distribution
        else:
            found[one.parameter] = _union(known, one)
    return found


def _with_tuples(seen: SeenDistribution) -> SeenDistribution:
    choices = getattr(seen.distribution, "choices", ())
    if not any(isinstance(choice, list) for choice in choices):
        return seen
    from optuna.distributions import CategoricalDistribution

    return replace(seen, distribution=CategoricalDistribution(as_choice(choices)))


def _union(known: "BaseDistribution", other: SeenDistribution) -> "BaseDistribution":
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    new, number = other.distribution, (FloatDistribution, IntDistribution)
    if isinstance(known, CategoricalDistribution) and isinstance(new, CategoricalDistribution):
        return _all_choices(known, new)
    if isinstance(known, IntDistribution) and isinstance(new, IntDistribution):
        return _wider_int(known, new)
    if isinstance(known, number) and isinstance(new, number):
        return _wider_float(known, new)
    raise ExperienceError(
        f"a hyperparameter must be of one kind in all studies, but '{other.parameter}' is a "
        f"{type(new).__name__} in study '{other.study}' and a {type(known).__name__} before: "
        "read these studies apart",
        rule="different-kinds",
        field=other.parameter,
        value=type(new).__name__,
    )


def _all_choices(
    known: "CategoricalDistribution", new: "CategoricalDistribution"
) -> "CategoricalDistribution":
    from optuna.distributions import CategoricalDistribution

    # They are compared with their types, because 1 == True.
    tags = {(type(choice), choice) for choice in known.choices}
    added = [choice for choice in new.choices if (type(choice), choice) not in tags]
    return CategoricalDistribution([*known.choices, *added])


def _wider_int(known: "IntDistribution", new: "IntDistribution") -> "IntDistribution":
    from optuna.distributions import IntDistribution

    same_grid = known.step == new.step and (known.low - new.low) % new.step == 0
    return IntDistribution(
        min(known.low, new.low),
        max(known.high, new.high),
        log=known.log and new.log,
        step=new.step if same_grid else 1,
    )


def _wider_float(known: "Number", new: "Number") -> "FloatDistribution":
    """Return a float range without a step, because two grids seldom share their points."""
    from optuna.distributions import FloatDistribution

    return FloatDistribution(
        min(known.low, new.low), max(known.high, new.high), log=known.log and new.log
    )
