"""Test that the kept list of Kafka Streams' interface is that of its jars."""

from __future__ import annotations

import pytest

from tests.brokers import in_ci
from tests.differential.peer import JARS
from tests.porting.api.java_api import load_kept_api, parse_javap, read_java_api


def test_the_kept_list_is_what_the_jars_have() -> None:
    """Test that nothing is new; `python -m tests.porting.api` says of what is new what lacks."""
    reason = JARS.missing()
    if reason is not None and not in_ci():
        pytest.skip(reason)
    assert read_java_api() == load_kept_api()


def test_only_public_methods_of_public_classes_are_listed() -> None:
    text = """Compiled from "A.java"
public interface org.apache.kafka.streams.A<K> extends org.apache.kafka.streams.B<K> {
  public static final int LIMIT;
  public org.apache.kafka.streams.A();
  public abstract <V> java.util.List<V> pipeAll(java.util.List<V>);
  public java.lang.String toString();
}
class org.apache.kafka.streams.Hidden {
  public void run();
}
"""
    assert parse_javap(text) == {"A": ["pipeAll"]}
