"""Tasks as the fits take them: keys, sums over days, what a stored run solved."""
