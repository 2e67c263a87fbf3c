"""Zero-shot portfolios: short lists of configurations, one of which works on any dataset."""
