"""Figures and tables of benchmarks: curves, fronts, embeddings, tables in text and Markdown."""
