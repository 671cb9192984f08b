"""Writing topics, each epoch of a query and each named write once."""
