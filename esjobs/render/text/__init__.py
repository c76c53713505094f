"""Pages and tables as text for a terminal."""
