"""Copula transfer: one parametric prior over all past tasks' Gaussian scores (Salinas et al.)."""
