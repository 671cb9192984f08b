"""Assign the tasks of streams groups (KIP-1071), as Kafka's broker does.

Start reading at `sticky`. What it returns is the same as Kafka's, to the task, so that a group that
moves between the two moves no task.
"""
