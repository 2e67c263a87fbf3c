"""Files of tables: CSV and its kin, ARFF, Parquet."""
