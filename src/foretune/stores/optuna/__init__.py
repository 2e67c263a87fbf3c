"""Optuna's storages. No other room reads or writes them."""
