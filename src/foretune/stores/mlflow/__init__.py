"""Runs that MLflow has tracked, as experience."""
