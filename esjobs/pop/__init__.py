"""Parallel efficiency of jobs by the POP metrics, from the reports that TALP (of the DLB library) writes."""
