"""Convert keys and values between bytes and Arrow columns.

Start reading at `columns`, then `decoding` and `encoding`. What a column can't hold is refused with
its place, never rounded.
"""
