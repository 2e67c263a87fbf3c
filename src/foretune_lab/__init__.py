"""The laboratory: benchmarks, baselines, archives of recorded runs, and collecting knowledge."""
