"""Write topics exactly once: each epoch of a streaming query and each named batch write.

Start reading at `writing`, then `epochs`, which says how an epoch that is written again is found.
"""
