"""Hold committed offsets, and those that wait for the end of a transaction."""
