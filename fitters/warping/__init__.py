"""Dynamic time warping of multivariate series: distances in a band, and the nearest series, exactly."""
