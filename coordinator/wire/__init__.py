"""Serve connections of Kafka clients: frames, the codec, and bounds of memory.

Start reading at `server`, then `connection`. Nothing here knows what a request means.
"""
