"""Jobs that run: five rules over their last samples, who is warned, a command afterwards."""
