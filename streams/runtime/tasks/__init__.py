"""Run one task: its records in order, its steps, its stores, and what its offsets prove.

Start reading at `task`, then `task_creator` and `task_stores`. A task knows nothing of the thread
that runs it, nor of the group.
"""
