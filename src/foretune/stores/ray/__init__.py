"""Experiments of Ray Tune, as experience."""
