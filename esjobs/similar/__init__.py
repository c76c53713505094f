"""Jobs that behave alike, from their time series."""
