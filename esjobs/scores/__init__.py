"""How well jobs use what they are given: scores of counters and issues, rankings, what was asked for."""
