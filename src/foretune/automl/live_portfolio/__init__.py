"""Portfolios built by running configurations on many tasks."""
