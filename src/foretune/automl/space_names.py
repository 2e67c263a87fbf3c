"""The names of the search spaces that ship, for commands: importing them costs nothing."""

SHIPPED_SPACES = ("cash", "pipeline-classification", "pipeline-regression")
