"""Foretune: hyperparameter tuning that starts from what past runs taught."""
