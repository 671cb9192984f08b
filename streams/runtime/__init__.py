"""Run the tasks of an application exactly once, over any broker.

Start reading at `threads`, then `tasks`; docs/runtime.md has the recovery.
Nothing here knows the protocol of a group (`streams.membership`) or the files of a store (`state`),
and only `clients` knows confluent-kafka.
"""
