"""The names of the shipped search spaces. This module imports nothing, so commands start fast."""

ZERO_SHOT_SPACES = ("xgboost", "lightgbm", "catboost", "mlp", "zaml")
SHIPPED_SPACES = ("cash", "pipeline-classification", "pipeline-regression")
