"""Time series of jobs: packed in the store, read back as arrays."""
