"""Primary error of a job, category of an error, name of a worker node: pure rules."""
