"""Evaluating trials: one protocol, in this process or in worker processes with limits.

Nothing is imported here, so that a worker process starts with little more than what it evaluates.
"""
