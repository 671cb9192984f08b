"""Bind a store to its changelog: what is written, which part is read, and what expires.

Start reading at `changelog`, then `logged_store`. Nothing here reads a topic: that is done in
`streams.runtime.restoring`.
"""
