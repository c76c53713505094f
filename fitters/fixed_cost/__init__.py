"""The fixed cost of jobs: estimated, and taken out of sums."""
