"""Gaussian processes on the trials alone."""
