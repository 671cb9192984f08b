"""Restore stores from changelogs, and keep those of standby tasks up to date.

Start reading at `restorer`, then `changelog_reader`. No task processes a record before its stores
are whole, and nothing here writes to a topic.
"""
