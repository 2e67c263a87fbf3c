"""Foretune inside other tools; one room a tool."""
