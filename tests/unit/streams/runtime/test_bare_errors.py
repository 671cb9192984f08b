"""Test that a fatal error which confluent-kafka raises bare is caught like any other."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

import streams.runtime.clients.producer as producer_module
from streams.errors import TaskMigrated
from streams.runtime.clients.producer import StreamsProducer
from streams.runtime.clients.refusable_call import call_while_usable

FATAL = KafkaError(KafkaError._FENCED, "fenced by a newer instance", fatal=True)


def raise_bare(*_: Any) -> None:
    """Raise a KafkaError as confluent-kafka 2.16 does after callbacks: it is no exception."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes = [ctypes.py_object, ctypes.py_object, ctypes.c_void_p]
    restore.restype = None
    for each in (KafkaError, FATAL):  # whose references are taken over
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    restore(KafkaError, FATAL, None)


bare = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="Python 3.12 and later can't raise what is no exception"
)


@bare
def test_a_fatal_error_that_is_raised_bare_tells_that_the_producer_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SimpleNamespace(produce=raise_bare, flush=raise_bare)
    monkeypatch.setattr(producer_module, "create_client", lambda *_: client)
    producer = StreamsProducer("a-0", {}, transactional=False, timeout_s=1.0)
    with pytest.raises(TaskMigrated, match="flush: fenced by a newer instance"):
        producer.flush()


@bare
def test_it_ends_a_call_on_a_thread_of_its_own() -> None:
    with pytest.raises(KafkaException, match="_FENCED"):
        call_while_usable(raise_bare, (), lambda: None, limit_s=5)
