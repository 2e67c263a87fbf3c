"""Names the modules that worker processes of a fit need. This module imports nothing."""

OPTIONAL = ("lightgbm", "xgboost", "catboost")
"""The estimators that need a package of the same name."""
LIBRARIES = ("sklearn.compose", "sklearn.ensemble", "sklearn.neural_network", *OPTIONAL)
"""The libraries of the pipelines."""
WORKER_MODULES = (
    "foretune.automl.trial_evaluator",
    "foretune.automl.final_model.worker_pool",
    *LIBRARIES,
)
"""The modules that a fork server imports before it forks a worker."""
