"""Read topics as DataFrames and streams: options, limits, splits and batches."""
