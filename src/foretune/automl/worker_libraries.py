"""Names the modules that the processes of a fit need. This module imports none of them."""

OPTIONAL = ("lightgbm", "xgboost", "catboost")
"""The estimators that need a package of the same name."""
LIBRARIES = ("sklearn.compose", "sklearn.ensemble", "sklearn.neural_network", *OPTIONAL)
"""The libraries of the pipelines."""
WORKER_MODULES = (
    "foretune.automl.trial_evaluator",
    "foretune.automl.final_model.worker_pool",
    "foretune.automl.estimators.pipelines",
    "foretune.automl.estimators.stepped_fit",
    *LIBRARIES,
)
"""The modules that a fork server imports before it forks a worker."""
SEARCH_MODULES = (
    "foretune.automl.estimators.pipelines",
    "foretune.automl.estimators.stepped_fit",
    "foretune.automl.fit_result",
    "foretune.automl.past_suggestions",
    "foretune.stores.studies",
)
"""The modules of the search and the final model, which take seconds to import."""
