"""Experience from experiments of Ray Tune."""
