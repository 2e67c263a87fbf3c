"""Acquisition functions, candidates, ask/tell, and the registry of methods."""

from foretune.search.method import Design, Method
from foretune.search.optimizer import Optimizer
from foretune.search.registry import METHODS, lazy_learner, method
from foretune.search.suggestions import Suggestion, Told

__all__ = [
    "METHODS",
    "Design",
    "Method",
    "Optimizer",
    "Suggestion",
    "Told",
    "lazy_learner",
    "method",
]
