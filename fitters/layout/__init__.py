"""Columns of any library as arrays, and buckets in the layout of the fits."""
