"""What every room needs and nobody looks for: files, cache, progress, terminal, arrays, names."""
