"""Fixed cost of jobs: estimate and correction of sums."""
