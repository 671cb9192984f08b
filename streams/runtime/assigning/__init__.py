"""Assign tasks to the workers of a group, and prepare the internal topics that they need.

Start reading at `assignment`, then `group_assignment`. The placement itself is
`coordinator.assignors.tasks`; nothing here opens a store.
"""
