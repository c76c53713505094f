"""The fit of speed factors: search, errors, weights, results."""
