"""Columns of any library as arrays, and buckets in the layout that the fits read."""
