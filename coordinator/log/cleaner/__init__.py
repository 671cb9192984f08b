"""Compact logs by Kafka's rules, in slices: only the last record of each key stays.

Start reading at `cleaner`, then `offset_map`. Nothing of an open transaction is touched, and a
crash at any step leaves the log as it was or as it is to be.
"""
