"""Callbacks that report the rounds of LightGBM, XGBoost and Keras, and stop training when asked.

LightGBM and XGBoost are imported when their callback is made. Keras is never imported.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from foretune.errors import UsageError

__all__ = ["Reporter", "keras_callback", "lightgbm_callback", "xgboost_callback"]


class Reporter(Protocol):
    """The part of a trial that callbacks use; `RunningTrial` has it."""

    def report(self, step: float, value: float) -> None:
        """Report the value of the metric at a step."""

    def should_stop(self) -> bool:
        """Return whether the trial is to end now."""


def lightgbm_callback(
    trial: Reporter, metric: str | None = None, dataset: str | None = None
) -> Callable[[Any], None]:
    """Return a callback for `lightgbm.train(..., callbacks=[...])` and for `fit` of its estimators.

    Steps are boosting rounds, counted from 1. With `init_model` the count goes on.

    metric, dataset: which evaluation is reported, such as "auc" of "valid_0". Default: the last
        metric of the last dataset.

    Example:
        >>> def train(config, trial):
        ...     callbacks = [lightgbm_callback(trial, "binary_logloss")]
        ...     booster = lightgbm.train(
        ...         config, data, 500, valid_sets=[validation], callbacks=callbacks
        ...     )
        ...     return booster.best_score["valid_0"]["binary_logloss"]
    """
    from lightgbm.callback import EarlyStopException

    def report_round(env: Any) -> None:
        results = env.evaluation_result_list or []
        measured = {(each[0], each[1]): each[2] for each in results}
        trial.report(env.iteration + 1, _choose_value(measured, metric, dataset))
        if trial.should_stop():
            raise EarlyStopException(env.iteration, results)

    report_round.order = 25  # type: ignore[attr-defined]  # after records, before early stopping
    return report_round


def xgboost_callback(trial: Reporter, metric: str | None = None, dataset: str | None = None) -> Any:
    """Return a callback for `xgboost.train(..., callbacks=[...])` and for its estimators.

    Steps are boosting rounds, counted from 1. With `xgb_model` the count goes on.

    metric, dataset: which evaluation is reported, such as "logloss" of "validation_0". Default: the
        last metric of the last dataset.
    """
    from xgboost.callback import TrainingCallback

    class ReportRounds(TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            measured = {
                (data, name): _last_number(values)
                for data, metrics in evals_log.items()
                for name, values in metrics.items()
            }
            # In cross-validation the model is a list of models, and starts anew.
            count = getattr(model, "num_boosted_rounds", lambda: epoch + 1)
            trial.report(count(), _choose_value(measured, metric, dataset))
            return trial.should_stop()

    return ReportRounds()


def keras_callback(trial: Reporter, metric: str = "val_loss") -> Any:
    """Return a callback for `fit` of Keras models, and of any that call the same methods.

    Steps are epochs, counted from 1. Training is stopped with `model.stop_training = True`.

    metric: the name in the logs of an epoch.
    """
    return _EpochCallback(trial, metric)


class _EpochCallback:
    """A callback of Keras, without Keras."""

    def __init__(self, trial: Reporter, metric: str) -> None:
        self._trial, self._metric = trial, metric
        self.model: Any = None
        self.params: Mapping[str, Any] = {}

    def set_model(self, model: Any) -> None:
        """Take the model that is trained."""
        self.model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Take the parameters of the training."""
        self.params = params

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Report an epoch, and stop training if asked to."""
        measured = {("", name): value for name, value in (logs or {}).items()}
        self._trial.report(epoch + 1, _choose_value(measured, self._metric, None))
        if self._trial.should_stop():
            self.model.stop_training = True

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a method that does nothing for all other events."""
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(name)


def _choose_value(
    measured: Mapping[tuple[str, str], Any], metric: str | None, dataset: str | None
) -> float:
    """Return one measured value; measured: {(dataset, metric): value}."""
    fitting = [
        value
        for (data, name), value in measured.items()
        if metric in (None, name) and dataset in (None, data)
    ]
    if not fitting:
        wanted = " of ".join(each for each in (metric or "a metric", dataset) if each)
        known = ", ".join(" of ".join(filter(None, (name, data))) for data, name in measured)
        raise UsageError(
            f"a callback needs an evaluation to report, {wanted}, but training measures "
            f"{known or 'nothing'}: give a validation set, or name another metric",
            rule="no-evaluation",
            field="metric",
            value=metric,
        )
    return float(fitting[-1])


def _last_number(values: Sequence[Any]) -> float:
    """Return the last of the values of all rounds; cross-validation adds standard deviations."""
    last = values[-1]
    return float(last[0] if isinstance(last, tuple) else last)
