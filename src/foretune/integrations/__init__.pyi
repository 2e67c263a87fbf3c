from foretune.integrations.callbacks import (
    keras_callback as keras_callback,
    lightgbm_callback as lightgbm_callback,
    xgboost_callback as xgboost_callback,
)
from foretune.integrations.search_cv import ForetuneSearchCV as ForetuneSearchCV
