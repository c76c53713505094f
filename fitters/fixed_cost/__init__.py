"""Start-up time of jobs: estimate and correction of sums."""
