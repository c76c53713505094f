"""Effects of units and of classes from the same buckets."""
