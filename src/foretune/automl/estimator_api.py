"""The former place of the estimators, kept for programs that still import them from here."""

import warnings

from foretune.automl.sklearn_api import ForetuneClassifier, ForetuneRegressor

__all__ = ["ForetuneClassifier", "ForetuneRegressor"]

warnings.warn(
    "foretune.automl.estimator_api is now a part of foretune itself: "
    "write  from foretune import ForetuneClassifier, ForetuneRegressor",
    DeprecationWarning,
    stacklevel=2,
)
