"""Shared maths, each piece once; import its modules."""
