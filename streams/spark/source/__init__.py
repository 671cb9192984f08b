"""Reading topics: options, limits, splits, batches and streams."""
