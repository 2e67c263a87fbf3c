"""The names of the shipped search spaces. This module imports nothing, so commands start fast."""

SHIPPED_SPACES = ("cash", "pipeline-classification", "pipeline-regression")
