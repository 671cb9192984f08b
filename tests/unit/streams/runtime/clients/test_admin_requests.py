"""Test what is said where no broker answers."""

from __future__ import annotations

import socket

from confluent_kafka import KafkaError, KafkaException

from streams.runtime.clients.admin_requests import explain_no_broker
from streams.runtime.clients.errors import NotReady

LOST = KafkaException(KafkaError(KafkaError._TRANSPORT, "transport failure"))


def test_another_broker_is_advised_where_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        said = str(explain_no_broker(f"127.0.0.1:{unused.getsockname()[1]}", 1, LOST))
    assert "transport failure" in said
    assert "start it with" in said


def test_no_other_broker_is_advised_beside_a_process_that_is_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # as the kernel does for SIGSTOP
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        said = str(explain_no_broker(f"127.0.0.1:1,{address}", 1, LOST))
        not_ready = str(explain_no_broker(address, 1, NotReady("lists no brokers")))
    assert f"a process accepts connections at {address}" in said
    assert "start it with" not in said
    assert "SIGSTOP" not in not_ready, "it has answered"
