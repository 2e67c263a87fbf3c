"""Optuna's storages: the only reader and the only writer of them."""
