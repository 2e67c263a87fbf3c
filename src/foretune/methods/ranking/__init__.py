"""Deep Ranking Ensembles: surrogates that learn to rank (Khazi, Pineda Arango, Grabocka; 2023)."""
