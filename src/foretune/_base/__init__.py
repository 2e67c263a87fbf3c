"""Small tools for all rooms: files, cache, progress, terminal, arrays, names."""
