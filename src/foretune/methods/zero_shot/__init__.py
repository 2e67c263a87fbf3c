"""Zero-shot portfolios: short lists of configurations of which one works on any dataset."""
