"""Test what is said where no broker answers."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from confluent_kafka import KafkaError, KafkaException

from streams.runtime.clients.admin_requests import create_no_broker_error
from streams.runtime.clients.errors import NotReady

LOST = KafkaException(KafkaError(KafkaError._TRANSPORT, "transport failure"))


def test_another_broker_is_advised_where_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        said = str(create_no_broker_error(f"127.0.0.1:{unused.getsockname()[1]}", 1, LOST))
    assert "transport failure" in said
    assert "start it with" in said


def test_no_other_broker_is_advised_beside_a_process_that_is_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # as the kernel does for SIGSTOP
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        said = str(create_no_broker_error(f"127.0.0.1:1,{address}", 1, LOST))
        not_ready = str(create_no_broker_error(address, 1, NotReady("lists no brokers")))
    assert f"a process listens at {address}" in said
    assert "start it with" not in said
    assert "SIGSTOP" not in not_ready, "it has answered"


def test_a_process_of_this_machine_whose_queue_of_connections_is_full_is_there() -> None:
    with ExitStack() as opened:
        stopped = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        place = stopped.getsockname()
        for _ in range(8):
            client = opened.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(place)
        address = f"127.0.0.1:{place[1]}"
        error = KafkaException(KafkaError(KafkaError._TRANSPORT))
        said = str(create_no_broker_error(address, 1.0, error))
    assert f"a process listens at {address}" in said
    assert "another broker would not help" in said
