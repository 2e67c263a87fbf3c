"""Building experience: public datasets, which configurations are tried on them, and the trials."""
