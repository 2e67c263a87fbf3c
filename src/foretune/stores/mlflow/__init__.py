"""Experience from the runs that MLflow has tracked."""
