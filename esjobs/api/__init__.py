"""An open store and everything that can be asked of it, for notebooks and for the command line."""
