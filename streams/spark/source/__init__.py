"""Read topics as DataFrames and streams: options, limits, splits and batches.

Start reading at `batch_reader`, then `stream_reader`. Ranges are planned by the driver and read by
executors, and no group's offsets are moved.
"""
