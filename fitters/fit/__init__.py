"""The fit of speed factors: search, errors, weights, results, and what is asked of a result."""
