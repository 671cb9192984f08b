"""Coordinate streams groups (KIP-1071), whose tasks the broker assigns.

Start reading at `heartbeat`, then `configure` and `reconcile`. The members of an application send
its topology; the broker derives tasks and internal topics from it, computes who is to have which
task (`target`), and gives a task out only when nobody else has it any more.
"""
