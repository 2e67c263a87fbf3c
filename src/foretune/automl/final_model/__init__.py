"""The model that a search ends with: what it is made of, how it is fitted, saved and read."""
