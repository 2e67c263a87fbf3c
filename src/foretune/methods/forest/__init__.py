"""A random forest on the trials alone, as in SMAC."""
