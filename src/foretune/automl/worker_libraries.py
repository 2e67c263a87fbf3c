"""The modules that worker processes of a fit need. Nothing of weight is imported here."""

OPTIONAL = ("lightgbm", "xgboost", "catboost")
"""The estimators that need a package of the same name."""
LIBRARIES = ("sklearn.compose", "sklearn.ensemble", "sklearn.neural_network", *OPTIONAL)
"""What pipelines are made of."""
WORKER_MODULES = (
    "foretune.automl.trial_evaluator",
    "foretune.automl.final_model.worker_pool",
    *LIBRARIES,
)
"""What a fork server imports before it forks a worker."""
