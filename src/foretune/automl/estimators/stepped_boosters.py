"""Trains boosted trees round by round; a step is a round."""

from typing import Any, ClassVar

from foretune.automl.estimators.stepped import LearningRows, StepTrainer, StepWatch

MOST_ROUNDS = 5000
PATIENCE = 40


class LightGBMTrainer(StepTrainer):
    """Trains `LGBMClassifier` and `LGBMRegressor`."""

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
        if judging is not None:
            told["eval_set"] = [(judging.x, judging.y)]
            told["eval_sample_weight"] = None if judging.weights is None else [judging.weights]
        return estimator.fit(learning.x, learning.y, callbacks=[after_round], **told)

    def count_steps(self, estimator: Any) -> int:
        """Return the number of rounds."""
        return int(estimator.booster_.current_iteration())

    def truncate(self, estimator: Any, steps: int) -> Any:
        """Return an estimator with only the first rounds."""
        from copy import copy

        from lightgbm import Booster

        short = copy(estimator)
        text = estimator.booster_.model_to_string(num_iteration=steps)
        short._Booster = Booster(model_str=text)
        short._best_iteration = 0
        return short.set_params(n_estimators=steps)
