"""Dynamic time warping of multivariate series: distances in a band, and exact nearest series."""
