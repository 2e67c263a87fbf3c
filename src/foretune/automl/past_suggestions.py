"""Recommends configurations for a table from past datasets, without running a trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foretune.automl.fit_data import FitData
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.knowledge.memory import Memory
from foretune.automl.knowledge.relevant_experience import Recommendation
from foretune.automl.plan import FitPlan
from foretune.errors import UsageError
from foretune.experience import Status


@dataclass(frozen=True)
class PastSuggestion:
    """A configuration that past datasets recommend."""

    config: dict[str, Any]
    reason: str
    seconds: float | None
    """The expected time of a trial; None if it is unknown."""
    better_pipelines: float | None = None
    """The share of pipelines that are better on similar datasets."""
    better_than_all_so_far: float | None = None
    """The share that is better than the best of this suggestion and all before it."""


@dataclass(frozen=True)
class PastSuggestions:
    """Suggestions for a table, the best first, and the knowledge that they rest on."""

    data: FitData
    plan: FitPlan
    knowledge: FitKnowledge
    suggestions: Sequence[PastSuggestion]


def suggest_from_past(
    data: FitData,
    plan: FitPlan,
    about: FitDescription,
    knowledge: FitKnowledge | None,
    length: int,
) -> PastSuggestions:
    """Recommend the user's best configurations on this table, then those of similar datasets.

    Raises UsageError if there are no past datasets.
    """
    if knowledge is None:
        raise UsageError(
            f"suggestions need past datasets, but there are none of '{about.space_name}': collect "
            "some with 'foretune collect' and add them with 'foretune experience add'",
            rule="no-past-datasets",
            value=about.space_name,
        )
    own = _best_of_this_table(knowledge, about)
    others = _of_similar_datasets(knowledge, about, length, [each.config for each in own])
    return PastSuggestions(data, plan, knowledge, [*own, *others][:length])


def _best_of_this_table(knowledge: FitKnowledge, about: FitDescription) -> list[PastSuggestion]:
    """Return the best of the user's trials on this very table, if there are any."""
    name, sign = knowledge.metric.name, knowledge.metric.sign
    # Only the requested space counts, because estimators that it leaves out must not come back.
    earlier = Memory.of_user().earlier(about.space_name, about.task, space=knowledge.space)
    done = [each for each in earlier if each.status is Status.DONE and name in each.values]
    if not done:
        return []
    best = min(done, key=lambda each: sign * each.values[name])
    reason = f"the best of your {len(done)} trials on this table ({name} {best.values[name]:.5g})"
    return [PastSuggestion(dict(best.config), reason, best.seconds)]


def _of_similar_datasets(
    knowledge: FitKnowledge, about: FitDescription, length: int, known: list[dict[str, Any]]
) -> list[PastSuggestion]:
    """Return configurations that suited similar datasets, without those that are known already."""
    found = knowledge.suggest(length, about.meta_features)
    is_known = found.configs.isin(knowledge.space.encode(known))
    return [
        PastSuggestion(
            config,
            _reason(row, found),
            float(found.seconds[row]),
            float(found.places[row]),
            float(found.together[row]),
        )
        for row, config in enumerate(found.configs.dicts())
        if not is_known[row]
    ]


def _reason(row: int, found: Recommendation) -> str:
    alone, together = (_place_text(float(of[row])) for of in (found.places, found.together))
    text = f"in the {alone} of pipelines on similar datasets"
    return text if row == 0 else f"{text}; the best of these {row + 1}, in the {together}"


def _place_text(share: float) -> str:
    return f"best {max(share, 0.01):.0%}"
