"""Ensembles of Gaussian processes, one for each past task."""
