"""Trains boosted trees round by round; a step is a round."""

from copy import copy
from typing import Any, ClassVar

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.estimators.stepped import LearningRows, StepTrainer, StepWatch

MOST_ROUNDS = 5000
PATIENCE = 40
HIST_ROUNDS = 32
"""The rounds of scikit-learn's boosting before its loss is first measured; then it doubles."""
LEAST_SHARE = 1e-15


class LightGBMTrainer(StepTrainer):
    """Trains `LGBMClassifier` and `LGBMRegressor`; codes of categories are split by sets."""

    most_steps: ClassVar[int] = MOST_ROUNDS
    patience: ClassVar[int] = PATIENCE

    def _run_steps(
        self,
        estimator: Any,
        learning: LearningRows,
        judging: LearningRows | None,
        most: int,
        watch: StepWatch,
    ) -> Any:
        from lightgbm import EarlyStopException

        def after_round(env: Any) -> None:
            if judging is None:
                if watch.is_late:
                    raise EarlyStopException(env.iteration, [])
                return
            [(_, _, loss, *_), *_] = env.evaluation_result_list
            is_last = env.iteration + 1 == env.end_iteration
            if watch.is_over(loss) or is_last:
                raise EarlyStopException(watch.best - 1, env.evaluation_result_list)

        estimator.set_params(n_estimators=most)
        told: dict[str, Any] = {"sample_weight": learning.weights}
        if learning.codes:
            told["categorical_feature"] = list(learning.codes)
        if judging is not None:
            told["eval_set"] = [(judging.x, judging.y)]
            told["eval_sample_weight"] = None if judging.weights is None else [judging.weights]
        return estimator.fit(learning.x, learning.y, callbacks=[after_round], **told)

    def count_steps(self, estimator: Any) -> int:
        """Return the number of rounds."""
        return int(estimator.booster_.current_iteration())

    def truncate(self, estimator: Any, steps: int) -> Any:
        """Return an estimator with only the first rounds."""
        from lightgbm import Booster

        short = copy(estimator)
        text = estimator.booster_.model_to_string(num_iteration=steps)
        short._Booster = Booster(model_str=text)
        short._best_iteration = 0
        return short.set_params(n_estimators=steps)


class XGBoostTrainer(StepTrainer):
    """Trains `XGBClassifier` and `XGBRegressor`; codes of categories are split by sets."""

    most_steps: ClassVar[int] = MOST_ROUNDS
    patience: ClassVar[int] = PATIENCE

    def _run_steps(
        self,
        estimator: Any,
        learning: LearningRows,
        judging: LearningRows | None,
        most: int,
        watch: StepWatch,
    ) -> Any:
        from xgboost.callback import TrainingCallback

        class AfterRound(TrainingCallback):  # type: ignore[misc]
            """Tells the watch about each round."""

            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
                """Return whether to stop."""
                if judging is None:
                    return watch.is_late
                [losses] = evals_log["validation_0"].values()
                return watch.is_over(float(losses[-1]))

        told: dict[str, Any] = {"sample_weight": learning.weights}
        if judging is not None:
            told["eval_set"] = [(judging.x, judging.y)]
            told["verbose"] = False
            if judging.weights is not None:
                told["sample_weight_eval_set"] = [judging.weights]
        if learning.codes:
            kinds = ["q"] * learning.x.shape[1]
            for place in learning.codes:
                kinds[place] = "c"
            estimator.set_params(feature_types=kinds, enable_categorical=True)
        estimator.set_params(n_estimators=most, callbacks=[AfterRound()])
        estimator.fit(learning.x, learning.y, **told)
        # The trials' process and the model file keep no callbacks.
        estimator.set_params(callbacks=None, n_estimators=self.count_steps(estimator))
        if judging is not None:
            estimator.get_booster().set_attr(best_iteration=str(watch.best - 1))
        return estimator

    def count_steps(self, estimator: Any) -> int:
        """Return the number of rounds."""
        return int(estimator.get_booster().num_boosted_rounds())

    def truncate(self, estimator: Any, steps: int) -> Any:
        """Return an estimator with only the first rounds."""
        short = copy(estimator)
        short._Booster = estimator.get_booster()[:steps]
        short._Booster.set_attr(best_iteration=None)
        return short.set_params(n_estimators=steps)


class CatBoostTrainer(StepTrainer):
    """Trains `CatBoostClassifier` and `CatBoostRegressor`.

    CatBoost predicts with all the trees that it has, so those after the best step are dropped.
    """

    most_steps: ClassVar[int] = MOST_ROUNDS
    patience: ClassVar[int] = PATIENCE

    def _run_steps(
        self,
        estimator: Any,
        learning: LearningRows,
        judging: LearningRows | None,
        most: int,
        watch: StepWatch,
    ) -> Any:
        class AfterCatBoostRound:
            """Tells the watch about each round."""

            def after_iteration(self, info: Any) -> bool:
                """Return whether to go on."""
                if judging is None:
                    return not watch.is_late
                [losses] = info.metrics["validation"].values()
                return not watch.is_over(float(losses[-1]))

        from catboost import Pool

        estimator.set_params(n_estimators=most)
        told: dict[str, Any] = {"callbacks": [AfterCatBoostRound()]}
        if judging is not None:
            told["eval_set"] = Pool(judging.x, judging.y, weight=judging.weights)
            told["use_best_model"] = False
        estimator.fit(learning.x, learning.y, sample_weight=learning.weights, **told)
        if judging is not None:
            return self.truncate(estimator, watch.best)
        return estimator

    def count_steps(self, estimator: Any) -> int:
        """Return the number of rounds."""
        return int(estimator.tree_count_)

    def truncate(self, estimator: Any, steps: int) -> Any:
        """Return an estimator with only the first rounds."""
        # What CatBoost remembers of the judging rows has no place in a model file.
        short = type(estimator)(**estimator.get_params())
        short.load_model(blob=estimator._serialize_model())
        short.shrink(ntree_end=steps)
        return short


class HistTrainer(StepTrainer):
    """Trains scikit-learn's boosting of histograms, some rounds at a time."""

    most_steps: ClassVar[int] = MOST_ROUNDS
    patience: ClassVar[int] = PATIENCE

    def _run_steps(
        self,
        estimator: Any,
        learning: LearningRows,
        judging: LearningRows | None,
        most: int,
        watch: StepWatch,
    ) -> Any:
        estimator.set_params(early_stopping=False, warm_start=True)
        rounds, is_over = 0, False
        while not is_over and rounds < most:
            rounds = min(most, max(HIST_ROUNDS, rounds + rounds // 2))
            estimator.set_params(max_iter=rounds)
            estimator.fit(learning.x, learning.y, sample_weight=learning.weights)
            if judging is None:
                is_over = watch.is_late
                continue
            known = len(watch.curve)
            losses = _staged_losses(estimator, judging)
            is_over = any(watch.is_over(loss) for loss in losses[known:])
        estimator.set_params(warm_start=False)
        return self.truncate(estimator, watch.best) if judging is not None else estimator

    def count_steps(self, estimator: Any) -> int:
        """Return the number of rounds."""
        return int(estimator.n_iter_)

    def truncate(self, estimator: Any, steps: int) -> Any:
        """Return an estimator with only the first rounds."""
        short = copy(estimator)
        short._predictors = estimator._predictors[:steps]
        return short.set_params(max_iter=steps)


def _staged_losses(estimator: Any, judging: LearningRows) -> list[float]:
    """Return the loss after each round: the squared error, or the log loss."""
    if hasattr(estimator, "staged_predict_proba"):
        of_true: list[Floats] = [
            -np.log(np.maximum(shares[np.arange(len(judging.y)), judging.y], LEAST_SHARE))
            for shares in estimator.staged_predict_proba(judging.x)
        ]
    else:
        of_true = [(each - judging.y) ** 2 for each in estimator.staged_predict(judging.x)]
    return [float(np.average(each, weights=judging.weights)) for each in of_true]
