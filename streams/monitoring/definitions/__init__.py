"""Define each figure of a worker once: its name, help text, labels and Kafka Streams' name for it.

Start reading at `definition`, then `catalog`. Nothing here measures.
"""
