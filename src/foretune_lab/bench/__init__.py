"""Replay of recorded tables, metrics, statistics and reports."""
