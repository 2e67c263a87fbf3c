"""Models for tables: shipped search spaces, pipelines, their scores, and files of fitted ones."""
