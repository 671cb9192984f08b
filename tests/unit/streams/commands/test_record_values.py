"""Test that `consume` prints the values that `produce` was given, or that either refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from streams.testing.cluster import InMemoryCluster
from tests import edge_values as edges
from tests.unit.properties import examples
from tests.unit.streams.commands.in_memory_clients import use_cluster

AS_JSON = ("--value-serde", "json")


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=typed)


@examples(50)
@given(edges.PLAIN)
def test_json_is_consumed_as_it_was_produced(value: Any) -> None:
    cluster = InMemoryCluster()
    cluster.create_topic("values", 1)
    with pytest.MonkeyPatch.context() as patch:
        use_cluster(patch, cluster)
        written = run("produce", "values", *AS_JSON, typed=json.dumps(value) + "\n")
        assert written.exit_code == 0, written.output
        read = run("consume", "values", "--from", "earliest", "-n", "1", *AS_JSON, "--json")
    assert edges.are_same(json.loads(read.stdout)["value"], value)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("NaN", "value: JSON has no nan"),
        ('{"a": [1e400]}', "value.a[0]: JSON has no inf"),
        ('{"a": "\\ud800"}', "value.a: UTF-8 has no lone surrogates"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' is there twice"),
    ],
)
def test_json_that_would_come_back_as_another_value_is_not_produced(
    monkeypatch: pytest.MonkeyPatch, typed: str, reason: str
) -> None:
    cluster = InMemoryCluster()
    cluster.create_topic("values", 1)
    use_cluster(monkeypatch, cluster)
    result = run("produce", "values", *AS_JSON, typed=typed)
    assert result.exit_code == 2
    assert reason in result.stderr
