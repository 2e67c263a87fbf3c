"""Building experience: public datasets, the configurations to try on them, and the trials."""
