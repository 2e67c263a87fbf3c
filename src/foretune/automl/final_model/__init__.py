"""Makes the final model of a search: chooses its pipelines, fits, saves and reads them."""
