"""Tables and figures that a reader meets; each knows numbers and names, none knows benchmarks."""
