"""The words in which people ask about provisioning; apart, for the command line imports nothing heavy."""

BY = ("site", "queue", "project", "user", "application", "size")
"""What waiting, use and losses are told of."""
