"""A searcher for Ray Tune: any method of Foretune, with or without experience."""

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from foretune.errors import (
    ArtifactError,
    ExhaustedError,
    ForetuneWarning,
    UsageError,
    explain_missing_extras,
)
from foretune.experience import Experience, Status
from foretune.experience.alignment.missing_policy import check_policy
from foretune.integrations.ray_tune_space import TuneSpace, tune_space
from foretune.methods.contracts import Prior, Target
from foretune.search.arguments import carry_over_past, load_experience, load_prior
from foretune.search.optimizer import Optimizer
from foretune.search.prior_cache import prior_of
from foretune.search.registry import method as method_named
from foretune.search.suggestions import Suggestion, Told
from foretune.space import Space
from foretune.stores.files.plain_values import as_choice

with explain_missing_extras("the searcher for Ray Tune"):
    from ray.tune.search import Searcher

FORMAT = "foretune-ray-searcher-1"
DEFAULT = "auto"
MODES = ("min", "max")


@dataclass
class _Trial:
    """A trial of Tune. If it ended without a loss, it failed."""

    config: dict[str, Any]
    ended: bool = False
    loss: float | None = None


class ForetuneSearcher(Searcher):  # type: ignore[misc]
    """Suggests the configurations of Ray Tune's trials.

        tuner = tune.Tuner(train, param_space={"lr": tune.loguniform(1e-5, 1e-1)},
            tune_config=tune.TuneConfig(search_alg=ForetuneSearcher(), metric="loss", mode="min"))

    Arguments:
        method: a name of `foretune methods`.
        space: in any way that `Space.of` reads, conditional ones included; Tune's `param_space` if
            it is not given. Names of nested hyperparameters are joined by `/`.
        metric, mode: as for Tune; those of its TuneConfig if not given.
        experience: past tasks, as an `Experience` or its file. The space may have changed since: a
            warning says what is used. If there are several metrics, Tune's metric counts.
        prior: what the method has learnt already, as a `Prior` or its file.
        missing: what to do with past trials that lack a value, as for `Experience.in_space`.
        seed: makes suggestions reproducible.

    The last report of a trial is its result, also where a scheduler has stopped it early.
    """

    def __init__(
        self,
        method: str = DEFAULT,
        *,
        space: Any = None,
        metric: str | None = None,
        mode: str | None = None,
        experience: Experience | Path | str | None = None,
        prior: Prior | Path | str | None = None,
        missing: str = "default",
        seed: int = 0,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        if experience is not None and prior is not None:
            raise UsageError(
                "a searcher learns from experience or has a prior, but got both: give one of them",
                rule="experience-or-prior",
            )
        self._method = method_named(method)
        self._experience, self._prior, self._seed = experience, prior, seed
        self._missing = check_policy(missing)
        self._given_space = None if space is None else TuneSpace(Space.of(space), {}, nested=False)
        self._space = self._given_space
        self._trials: dict[str, _Trial] = {}
        """{Tune's id: trial}, in the order of the suggestions."""
        self._ids: dict[str, int] = {}
        """{Tune's id of a running trial: its id in the optimiser}"""
        self._ended: list[str] = []
        """Tune's ids of the trials that have ended, in the order of their ends."""
        self._last_results: dict[str, dict[str, Any]] = {}
        """{Tune's id of a running or paused trial: its last report}"""
        self._optimizer: Optimizer | None = None
        self._warned = False

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take over what Tune was told; False if there are two search spaces."""
        del spec
        self._metric, self._mode = metric or self._metric, mode or self._mode
        found = tune_space(config)
        if found is not None:
            if self._given_space is not None:
                return False
            self._space = found
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the configuration of a new trial, or FINISHED when all have been tried."""
        self._metric_and_mode()  # refused before a trial has run for nothing
        optimizer = self._get_optimizer()
        try:
            suggestion = optimizer.ask()[0]
        except ExhaustedError:
            finished: str = Searcher.FINISHED
            return None if self._ids else finished
        self._ids[trial_id] = suggestion.id
        self._trials[trial_id] = _Trial(suggestion.config)
        assert self._space is not None
        return self._space.to_tune_config(suggestion.config)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Learn how a trial ended, by its last report."""
        last = self._last_results.pop(trial_id, None)
        if trial_id not in self._ids:
            return
        result = last if result is None else result
        metric, mode = self._metric_and_mode()
        value = None if error or result is None else self._read_metric(metric, result)
        trial = self._trials[trial_id]
        trial.ended = True
        self._ended.append(trial_id)
        if value is not None and math.isfinite(value):
            trial.loss = -value if mode == "max" else value
        self._get_optimizer().tell([_outcome_of(trial, id_=self._ids.pop(trial_id))])

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Keep the last report: Tune gives none when a scheduler stops a paused trial."""
        self._last_results[trial_id] = result

    def save(self, checkpoint_path: str) -> None:
        """Write all trials to a file (JSON)."""
        if self._space is None:
            return
        trials = [[id_, t.config, t.ended, t.loss] for id_, t in self._trials.items()]
        state = {
            "format": FORMAT,
            "method": self._method.name,
            "seed": self._seed,
            "space": self._space.space.to_json(),
            "trials": trials,
            "ended": self._ended,
        }
        Path(checkpoint_path).write_text(json.dumps(state), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Read what `save` has written, and go on from there."""
        try:
            state = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
            known = state["format"] == FORMAT
            trials = {
                id_: _Trial(_with_tuples(config), *fields)
                for id_, config, *fields in state["trials"]
            }
            ended = _order_of_ends(trials, state.get("ended"))
            space, name, seed = Space.from_json(state["space"]), state["method"], state["seed"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _unfit(checkpoint_path) from error
        if not known or name != self._method.name:
            raise _unfit(checkpoint_path)
        if self._space is None:
            self._space = TuneSpace(space, {})
        elif self._space.space != space:
            raise _unfit(checkpoint_path)
        self._trials, self._ended, self._seed, self._optimizer = trials, ended, seed, None
        self._get_optimizer()

    def _metric_and_mode(self) -> tuple[str, str]:
        """Return the metric and its mode, or refuse to search without them."""
        if not isinstance(self._metric, str) or self._mode not in MODES:
            raise UsageError(
                "a search needs the name of its metric and a mode, 'min' or 'max', but got metric="
                f"{self._metric!r} and mode={self._mode!r}: give both to tune.TuneConfig or to the "
                "searcher",
                rule="no-metric-and-mode",
                value=(self._metric, self._mode),
            )
        return self._metric, self._mode

    def _read_metric(self, metric: str, result: Mapping[str, Any]) -> float | None:
        """Return the metric of a report; None, with one warning, if it holds no number for it."""
        value = _single(result.get(metric))
        if isinstance(value, Real):
            return float(value)
        if not self._warned:
            self._warned = True
            lacking = _not_a_number(metric, value) if metric in result else _absent(metric, result)
            warning = ForetuneWarning(lacking, rule="metric-not-reported", field=metric)
            warnings.warn(warning, stacklevel=3)
        return None

    def _get_optimizer(self) -> Optimizer:
        """Return the optimiser. It is made when the space is known, and told all trials so far."""
        if self._optimizer is None:
            if self._space is None:
                raise UsageError(
                    "a search needs something to choose, but there is neither a space nor a "
                    "search space in Tune's param_space: give one",
                    rule="nothing-to-choose",
                    field="space",
                )
            target = Target(self._space.space)
            self._optimizer = Optimizer(target, self._method, self._make_prior(), seed=self._seed)
            # A model may depend on the order, so trials are told in the order of their ends.
            self._optimizer.tell(_outcome_of(self._trials[id_]) for id_ in self._ended)
            self._ids = {
                id_: -1 - place
                for place, (id_, trial) in enumerate(self._trials.items())
                if not trial.ended
            }
            self._optimizer.assume_pending(
                Suggestion(number, self._trials[id_].config, "")
                for id_, number in self._ids.items()
            )
        return self._optimizer

    def _make_prior(self) -> Prior:
        prior = load_prior(self._prior, self._method)
        if prior is not None:
            return prior
        known = load_experience(self._experience)
        if known is not None and len(known.metrics) > 1:
            known = known.with_metrics([self._metric_in(known)])
        if known is not None and self._space is not None:
            self._check_direction(known)
            known = carry_over_past(known, self._space.space, missing=self._missing, stacklevel=5)
        return prior_of(self._method, known, seed=self._seed)

    def _metric_in(self, experience: Experience) -> str:
        """Return the metric of this search. An experience of several metrics must hold it."""
        names = [metric.name for metric in experience.metrics]
        if self._metric not in names:
            raise UsageError(
                f"an experience of several metrics must hold the one of the search, but it holds "
                f"{', '.join(names)} and the search has {self._metric}: choose one with "
                "Experience.with_metrics",
                rule="no-metric-of-the-search",
                field="experience",
                value=names,
            )
        return self._metric

    def _check_direction(self, experience: Experience) -> None:
        """Refuse a mode that would turn the best past trials into the worst."""
        recorded = experience.metrics[0]
        # With another metric both modes may be right: a loss is minimised, and an accuracy is not.
        known = self._metric == recorded.name and self._mode in MODES
        if known and self._mode != recorded.direction:
            raise UsageError(
                f"a mode must be the direction of the experience, but there '{recorded.name}' is "
                f"{recorded.direction} and the search has mode='{self._mode}': give "
                f"mode='{recorded.direction}', or another experience",
                rule="other-direction",
                field="mode",
                value=self._mode,
            )


def _with_tuples(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration from JSON with its tuples, which JSON writes as lists."""
    return {name: as_choice(value) for name, value in config.items()}


def _order_of_ends(trials: Mapping[str, _Trial], stored: list[str] | None) -> list[str]:
    """Return the ids of trials that have ended; older files do not have their order."""
    suggested = [id_ for id_, trial in trials.items() if trial.ended]
    if stored is None:
        return suggested
    if sorted(stored) != sorted(suggested):
        raise ValueError("the trials that have ended are not those whose order is stored")
    return stored


def _single(value: Any) -> Any:
    """Return the number in an array or a tensor without dimensions; losses often are one."""
    alone = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if alone else value


def _absent(metric: str, result: Mapping[str, Any]) -> str:
    numbers = [name for name, value in result.items() if _is_number(value)]
    return (
        f"a trial must report the metric of the search, '{metric}', but one has reported "
        f"{', '.join(numbers) or 'no number'}, and counts as failed: name what is reported as the "
        "metric, or report it"
    )


def _not_a_number(metric: str, value: Any) -> str:
    return (
        f"a trial must report its metric, '{metric}', as a number, but one has reported a value of "
        f"the type {type(value).__name__}, and counts as failed: report float(value)"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _outcome_of(trial: _Trial, *, id_: int | None = None) -> Told:
    """Return the outcome of a trial; id_: its id if the optimiser suggested it."""
    status = Status.FAILED if trial.loss is None else Status.DONE
    losses = (math.nan if trial.loss is None else trial.loss,)
    return Told(losses, id=id_, config=None if id_ is not None else trial.config, status=status)


def _unfit(path: str) -> ArtifactError:
    return ArtifactError(
        f"a searcher goes on from a file that a searcher of the same method and space has saved, "
        f"but '{path}' is not one: restore it with the same arguments",
        rule="other-search",
        field="checkpoint_path",
        value=path,
    )
