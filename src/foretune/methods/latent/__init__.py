"""Algorithms and their hyperparameters, chosen on one latent space that all of them share."""
