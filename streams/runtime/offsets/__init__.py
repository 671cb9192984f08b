"""Interpret committed offsets: their metadata, their topics' ids, and where an input begins.

Start reading at `offset_metadata`, then `offset_reset`. Nothing here commits an offset.
"""
