"""Compare the same topologies in Kafka Streams and in Millrace, record by record.

`description.py` says what a case is, `generator.py` makes one from a seed, `peer.py` runs it in
Kafka Streams' own TopologyTestDriver (a Java program in `tests/peers`), `ours.py` in ours,
`compare.py` says where they differ, and `shrink.py` makes a small case of one that does.
"""
