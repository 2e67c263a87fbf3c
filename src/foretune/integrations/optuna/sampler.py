"""The sampler: it answers Optuna name by name from a configuration that was chosen as a whole."""

import threading
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler, RandomSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from foretune.errors import ForetuneWarning, MethodError, UsageError
from foretune.experience import Experience
from foretune.experience.alignment.missing_policy import check_policy
from foretune.integrations.optuna.sampler_knowledge import (
    WITH_EXPERIENCE,
    SamplerKnowledge,
    prior_space,
)
from foretune.integrations.optuna.study_search import SUGGESTED, StudySearch
from foretune.methods.contracts import Prior
from foretune.search import method as method_named
from foretune.search.arguments import load_experience, load_prior
from foretune.search.seeds import check_seed, derive_seed
from foretune.space import Space
from foretune.stores.optuna.past_studies import PastStudies, past_studies
from foretune.stores.optuna.storage import open_storage
from foretune.stores.optuna.stored_studies import same_storage
from foretune.stores.optuna.values import UNFIT, to_optuna_value


class ForetuneSampler(BaseSampler):
    """Any method of Foretune inside any Optuna study.

        study = optuna.create_study(storage="sqlite:///mine.db", sampler=ForetuneSampler())
        study.optimize(objective, n_trials=50)

    The whole configuration is chosen when a trial asks for its first hyperparameter. The space is
    `space`, or what earlier trials and past studies asked for. A name that is new is drawn at
    random. By default the sampler learns from the other studies of the same storage.

    Arguments:
        method: a name of `foretune methods`. Default: `gcp-prior` if there are at least three past
            studies to learn from, else `auto`, which then starts from nothing.
        experience: past tasks to learn from, as an `Experience` or its file.
        prior: what the method has learnt already, as a `Prior` or its file.
        space: what the program will ask for, as `Space.of` takes it. A hyperparameter that belongs
            to a choice has a long name, such as `model:svm:C`.
        missing: what to do with past trials that lack a value, as for `Experience.in_space`.
        seed: makes suggestions reproducible. Give parallel processes different seeds, or none.
        past_studies: whether to learn from the other studies of the storage if nothing is given.
        constraints_func: as for Optuna's own samplers; values above 0 are violations.
    """

    def __init__(
        self,
        method: str | None = None,
        *,
        experience: Experience | Path | str | None = None,
        prior: Prior | Path | str | None = None,
        space: Any = None,
        seed: int | None = None,
        missing: str = "default",
        past_studies: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        if experience is not None and prior is not None:
            raise UsageError(
                "a sampler learns from experience or has a prior, but got both: give one of them",
                rule="experience-or-prior",
            )
        self._method = None if method is None else method_named(method).name
        self._space = None if space is None else Space.of(space)
        known = load_experience(experience)
        self._missing = check_policy(missing)
        self._past = None if known is None else PastStudies((known,), missing=missing)
        self._prior = load_prior(prior, method_named(self._method or WITH_EXPERIENCE))
        self._storage: str | BaseStorage | None = None
        self._past_studies = past_studies
        self._constraints_func = constraints_func
        if seed is not None:
            check_seed(seed)
        self._seed = _fresh_seed() if seed is None else int(seed)
        self._searches: dict[tuple[int, str], StudySearch] = {}
        self._unknown: set[str] = set()
        """Names that the given space does not hold, and that a warning was about."""
        self._lock = threading.RLock()
        if not past_studies:
            self._check_past_exists(self._past)

    @classmethod
    def from_storage(
        cls,
        storage: str | BaseStorage,
        method: str | None = None,
        *,
        space: Any = None,
        missing: str = "default",
        seed: int | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> "ForetuneSampler":
        """Return a sampler that learns from all studies of a storage: a URL, a file or an object.

        The studies are read when the first trial begins. What was learnt is kept on disk.
        """
        sampler = cls(
            method, space=space, missing=missing, seed=seed, constraints_func=constraints_func
        )
        if isinstance(storage, str):
            open_storage(storage)  # refuses a wrong name now instead of in the first trial
        sampler._storage = storage
        return sampler

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return what earlier trials of this study asked for, conditional names included."""
        del trial
        with self._lock:
            return dict(self._search_of(study, _trials_of(study)).distributions())

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the part of the trial's configuration that lies in `search_space`."""
        if not search_space:
            return {}
        plan = self._plan(study, trial)
        found = {
            name: to_optuna_value(distribution, plan[name])
            for name, distribution in search_space.items()
            if name in plan
        }
        return {name: value for name, value in found.items() if value is not UNFIT}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a value from the trial's configuration, or a random one if it has none."""
        plan = self._plan(study, trial)
        if param_name in plan:
            value = to_optuna_value(param_distribution, plan[param_name])
            if value is not UNFIT:
                return value
        self._warn_of_unknown(param_name)
        seed = derive_seed(self._seed, trial.number, zlib.crc32(param_name.encode()))
        random = RandomSampler(seed=seed)
        return random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Store a suggestion that the trial did not take, and the constraints of the trial.

        Every process that goes on with the study reads both.
        """
        del values
        self._store_not_taken(study, trial)
        if self._constraints_func is None or state is TrialState.FAIL:
            return
        constraints = tuple(float(value) for value in self._constraints_func(trial))
        if np.isnan(constraints).any():
            raise ValueError("Constraint values cannot be NaN.")
        study._storage.set_trial_system_attr(trial._trial_id, "constraints", constraints)

    def reseed_rng(self) -> None:
        """Use other random numbers from now on, so that copies of the sampler differ."""
        with self._lock:
            self._seed = _fresh_seed()
            for search in self._searches.values():
                search.seed = self._seed

    def __getstate__(self) -> dict[str, Any]:
        """Leave the studies out: a copy in another process reads them itself."""
        return {**self.__dict__, "_lock": None, "_searches": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _plan(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        with self._lock:
            trials = _trials_of(study)
            search = self._search_of(study, trials)
            return search.plan(trial, trials, _read_fixed_values(study, trial))

    def _warn_of_unknown(self, name: str) -> None:
        """Warn once that the given space does not hold a name: nothing is learnt about it."""
        if self._space is None or name in self._space.names or name in self._unknown:
            return
        self._unknown.add(name)
        nested = [own for own in self._space.names if own.endswith(f":{name}")]
        there = f", but has it as '{nested[0]}'" if nested else ""
        remedy = f'ask for "{nested[0]}"' if nested else "add it"
        warnings.warn(
            f"the given space does not hold '{name}', which the program asks for{there}: it is "
            f"drawn at random in every trial; {remedy}, or give Optuna's distributions as `space`",
            ForetuneWarning,
            stacklevel=2,
        )

    def _store_not_taken(self, study: Study, trial: FrozenTrial) -> None:
        with self._lock:
            search = self._searches.get((study._study_id, study.study_name))
            suggested = None if search is None else search.not_taken(trial)
        if suggested is not None:
            study._storage.set_trial_system_attr(trial._trial_id, SUGGESTED, suggested)

    def _search_of(self, study: Study, trials: Sequence[FrozenTrial]) -> StudySearch:
        """Return the search in this study; a new one if earlier trials in the storage changed."""
        key = (study._study_id, study.study_name)
        search = self._searches.get(key)
        if search is None or not search.learn_from(trials):
            knowledge = self._knowledge(study) if search is None else search.knowledge
            signs = tuple(
                -1.0 if direction.name == "MAXIMIZE" else 1.0 for direction in study.directions
            )
            plans = {} if search is None else _plans_of_running(search.plans, trials)
            search = self._searches[key] = StudySearch(signs, knowledge, self._seed, plans)
            search.learn_from(trials)
        return search

    def _knowledge(self, study: Study) -> SamplerKnowledge:
        if self._prior is not None:
            space = self._space or prior_space(self._prior)
            return SamplerKnowledge(self._method, prior=self._prior, space=space)
        past = self._past
        learns = self._method is None or method_named(self._method).transfers
        if past is None and learns:
            past = self._read_past_studies(study)
        self._check_past_exists(past)
        if past is not None and past.objectives != len(study.directions):
            raise UsageError(
                f"experience must have as many metrics as the study has objectives, but it has "
                f"{past.objectives} and the study {len(study.directions)}: choose some with "
                "Experience.with_metrics",
                rule="other-number-of-objectives",
                field="experience",
                value=past.objectives,
            )
        was_given = self._past is not None or self._storage is not None
        return SamplerKnowledge(self._method, past=past, space=self._space, was_given=was_given)

    def _check_past_exists(self, past: PastStudies | None) -> None:
        """Refuse a method that needs past studies if there are none.

        Without this check only the second trial would fail, when the space is known.
        """
        if self._method is None or self._prior is not None or past is not None:
            return
        if method_named(self._method).needs_experience:
            raise MethodError(
                f"the method '{self._method}' learns from past studies, but there are none: give "
                "`experience` or a `prior`, choose a storage with other studies, or choose a "
                "method that can start from nothing, such as 'auto'",
                rule="no-past-studies",
                field="method",
                value=self._method,
            )

    def _read_past_studies(self, study: Study) -> PastStudies | None:
        if self._storage is not None:
            given = self._storage
            storage = open_storage(given) if isinstance(given, str) else given
            but = study._study_id if same_storage(storage, study._storage) else None
            return past_studies(storage, len(study.directions), but=but, missing=self._missing)
        if not self._past_studies:
            return None
        return past_studies(
            study._storage, len(study.directions), but=study._study_id, missing=self._missing
        )


def _trials_of(study: Study) -> list[FrozenTrial]:
    # `study.get_trials` may leave trials out, because a pruner can filter them for samplers.
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def _plans_of_running(
    plans: Mapping[int, dict[str, Any]], trials: Sequence[FrozenTrial]
) -> dict[int, dict[str, Any]]:
    """Return the plans of running trials: these keep what was suggested to them.

    Other plans may belong to a deleted study that had the same name.
    """
    running = {trial.number for trial in trials if not trial.state.is_finished()}
    return {number: plan for number, plan in plans.items() if number in running}


def _read_fixed_values(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that others have fixed: enqueued ones, and a PartialFixedSampler's."""
    decided = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    sampler = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        decided |= sampler._fixed_params
        sampler = sampler._base_sampler
    return decided


def _fresh_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])
