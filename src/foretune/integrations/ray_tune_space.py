"""The search space of a Ray Tune program, in Foretune's terms."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretune.errors import SpaceError
from foretune.integrations.estimator_space import text_of
from foretune.space import Space
from foretune.space.parameters import choice_key
from foretune.stores.files.plain_values import as_choice
from foretune.stores.files.run_table import flatten_config

MOST_STEPS = 1000
"""A quantised range may have at most this many values."""
ROUNDING = 1e-9
PLAIN = (str, bool, int, float, type(None))
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The address of an object in the memory of this process."""
REMEDY = "use tune.uniform, loguniform, quniform, randint, lograndint, qrandint or choice"


@dataclass(frozen=True)
class TuneSpace:
    """A space and how its values are written in Tune's nested configurations."""

    space: Space
    choices: Mapping[str, Mapping[str, Any]]
    """{hyperparameter: {label: choice}} for choices that are no plain values."""
    nested: bool = True

    def to_tune_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration as Tune gives it to the program."""
        made: dict[str, Any] = {}
        for name, value in config.items():
            labels = self.choices.get(name)
            *path, last = name.split("/") if self.nested else [name]
            place = made
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value if labels is None else labels[value]
        return made


def tune_space(given: Mapping[str, Any]) -> TuneSpace | None:
    """Return the space of Tune's `param_space`; None if it leaves nothing to choose.

    What is no search space but a value stays with Tune.
    """
    from ray.tune.search.sample import Categorical, Domain

    notation: dict[str, Any] = {}
    choices: dict[str, dict[str, Any]] = {}
    for name, domain in flatten_config(given).items():
        if name.endswith("/grid_search"):
            raise SpaceError(
                f"a searcher cannot walk a grid, but '{name}' is one: {REMEDY}",
                rule="grid-search",
                field=name,
            )
        if not isinstance(domain, Domain):
            continue
        if isinstance(domain, Categorical):
            _check_values(name, domain.categories)
            labels = _label_choices(domain.categories)
            if any(label is not value for label, value in labels.items()):
                choices[name] = labels
            notation[name] = list(labels)
        else:
            notation[name] = _range(name, domain)
    return TuneSpace(Space.of(notation), choices) if notation else None


def _check_values(name: str, categories: Any) -> None:
    """Refuse choices that hold search spaces: Tune does not draw from them."""
    from ray.tune.search.sample import Domain

    for part in categories:
        if isinstance(part, Domain):
            raise SpaceError(
                f"a choice must be a value, but '{name}' chooses among search spaces: give the "
                "searcher the whole space, such as space={'model': {'svm': {'C': (0.1, 10.0)}}}",
                rule="choice-of-spaces",
                field=name,
            )
        if isinstance(part, Mapping):
            _check_values(name, part.values())
        elif isinstance(part, list | tuple):
            _check_values(name, part)


def _label_choices(categories: Sequence[Any]) -> dict[Any, Any]:
    """The choices, each once, by what stands for them: alike in every process.

    Plain values stand for themselves, lists of them are tuples, as where past trials are read, and
    others are written out. Where two could not be told apart (a space takes True for 1), all bear
    their places.
    """
    choices = list({_key(each): each for each in categories}.values())
    labels = [as_choice(each) if _is_plain(each) else _choice_text(each) for each in choices]
    if len(set(labels)) < len(labels):
        labels = [f"{place}: {label}" for place, label in enumerate(labels)]
    return dict(zip(labels, choices, strict=True))


def _key(choice: Any) -> Any:
    return choice_key(choice) if isinstance(choice, PLAIN) else id(choice)


def _is_plain(choice: Any) -> bool:
    """Return whether a space can hold a choice."""
    if isinstance(choice, list | tuple):
        return all(map(_is_plain, choice))
    return isinstance(choice, PLAIN)


def _choice_text(choice: Any) -> str:
    return ADDRESS.sub("", text_of(choice))


def _range(name: str, domain: Any) -> Any:
    """Return a range in the short notation, or the steps of a quantised range."""
    from ray.tune.search.sample import Float, Integer, LogUniform, Normal, Quantized

    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, Quantized):
        step, sampler = sampler.q, sampler.get_sampler()
    bounded = isinstance(domain, Float | Integer) and math.isfinite(domain.upper - domain.lower)
    if not bounded or isinstance(sampler, Normal):
        raise SpaceError(
            f"a hyperparameter needs bounds, but '{name}' is {domain!r}: {REMEDY}",
            rule="no-bounds",
            field=name,
        )
    whole = isinstance(domain, Integer)
    if step is not None and step != 1:
        return {"ordinal": _steps(name, domain, step)}
    # The upper end belongs to quantised ranges of integers, but not to other ranges of them.
    upper = domain.upper - 1 if whole and step is None else domain.upper
    # The type of the bounds is the type of the values; tune.uniform(0, 1) has whole bounds.
    low, high = domain.cast(domain.lower), domain.cast(upper)
    if low == high:
        return [low]
    log = ("log",) if isinstance(sampler, LogUniform) else ()
    return (low, high, *log)


def _steps(name: str, domain: Any, step: float) -> list[float]:
    # In doubles 0.3 / 0.1 is a little less than 3.
    first = math.ceil(domain.lower / step - ROUNDING)
    last = math.floor(domain.upper / step + ROUNDING)
    if last - first >= MOST_STEPS:
        raise SpaceError(
            f"a quantised range must have at most {MOST_STEPS} steps, but '{name}' has "
            f"{last - first + 1}: leave the quantum out",
            rule="too-many-steps",
            field=name,
            value=last - first + 1,
        )
    # Rounded, so that 3 * 0.1 is written as 0.3.
    return [domain.cast(float(f"{number * step:.12g}")) for number in range(first, last + 1)]
