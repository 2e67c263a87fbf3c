"""Files of evaluations: CSV, Parquet and archives of them."""
