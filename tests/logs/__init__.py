"""Record logs of real faults, and test `millrace logs analyze` on them.

    python -m tests.logs.record              records all again: our workers, Kafka Streams, brokers
    python -m tests.logs.record ours-fenced  one of them

The recordings are in `recorded/`, compressed, without paths and host names of the machine.
"""
