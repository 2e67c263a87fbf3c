"""Tables in, models out: datasets, shipped search spaces, pipelines, their scores."""
