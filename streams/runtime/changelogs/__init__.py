"""Bind a store to its changelog: what is written, which part is read, and what expires.

Start reading at `changelog`, then `logged_store`. Restoring is in `streams.runtime.restoring`.
"""
