"""One room a method; no room imports another."""
