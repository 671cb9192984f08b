"""Write topics exactly once: each epoch of a streaming query and each named batch write."""
