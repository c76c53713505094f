"""The line through declared values, and who deviates from it."""
