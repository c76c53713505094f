"""One site, queue or CPU model on one page: what all the tables and the jobs say of it, gathered, not made.

Nothing is stored here: rows are those of other capabilities, put side by side.
"""
