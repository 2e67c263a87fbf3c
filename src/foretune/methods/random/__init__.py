"""Methods without a model: random and Sobol search."""
