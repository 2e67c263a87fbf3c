"""Tables as people keep them: reading files, what their columns are, one matrix of numbers."""
