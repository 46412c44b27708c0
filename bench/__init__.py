"""Side-by-side and growth benchmarks; each module prints JSON."""
