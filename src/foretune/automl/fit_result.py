"""The result of a fit: the search, the model and its parts."""

from dataclasses import dataclass

from foretune.automl.final_model.fit import FinalModel
from foretune.automl.final_model.model import Model
from foretune.automl.first_model import FirstModel
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.plan import FitOptions, FitPlan
from foretune.automl.trial_search import Ending
from foretune.experience import Experience
from foretune.experience.evaluation_rows import build_experience
from foretune.experience.trial import Trial


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """A search that has ended, and the knowledge that it relied on."""

    plan: FitPlan
    options: FitOptions
    about: FitDescription
    """The name under which the table is remembered, and its meta-features."""
    trials: tuple[Trial, ...] = ()
    ending: Ending = "time"
    knowledge: FitKnowledge | None = None
    relied_on: str = ""
    """A sentence that says what the method relied on."""
    timings: tuple[tuple[str, float], ...] = ()
    """The names and seconds of the parts of the fit."""

    def experience(self) -> Experience:
        """Return the trials as an experience of one task."""
        about = self.about
        return build_experience(
            self.plan.space,
            about.metrics,
            [trial.evaluation(about.task) for trial in self.trials if trial.is_over],
            meta_features={about.task: dict(about.meta_features)},
        )


@dataclass(frozen=True)
class StandIn:
    """The model that is used if there was no time for a final model."""

    first: FirstModel
    reason: str
    """The reason why there is no final model."""
    is_earlier_model: bool
    """Whether it is the model of an earlier fit of the same table, and not the first model."""


@dataclass(frozen=True, kw_only=True)
class FitResult(SearchResult):
    """The result of a job: a final model, or the one that is used instead."""

    model: Model
    final: FinalModel | None = None
    """The final model and its parts; None if another model is used instead."""
    stand_in: StandIn | None = None
