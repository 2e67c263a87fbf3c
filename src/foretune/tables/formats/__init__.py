"""Files of tables: CSV and similar texts, ARFF, KEEL, Parquet."""
