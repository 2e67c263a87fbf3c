"""Algorithms as scikit-learn estimators, and the pipelines made of them."""
