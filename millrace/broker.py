"""Export the embedded broker, which speaks the Kafka protocol to any client.

    with EmbeddedBroker(topics={"lines": 4}) as broker:
        Producer({"bootstrap.servers": broker.bootstrap_servers})

It runs inside this process. An application needs none of it: it starts a broker of its own, or one
is started by `millrace broker`.
"""

from coordinator import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
