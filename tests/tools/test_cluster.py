"""Test the tools that describe the cluster: its broker, its quorum, its features, its APIs."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.conformance.kafka_versions import find_left_out
from tests.tools.shell import Pair

Same = Callable[[str], str]


def test_the_cluster_is_one_broker(same: Same) -> None:
    assert same("kafka-cluster cluster-id --bootstrap-server {}") == "Cluster ID: ID\n"
    endpoints = same("kafka-cluster list-endpoints --bootstrap-server {}")
    unknown = same("kafka-cluster unregister --bootstrap-server {} --id 7")
    assert "Broker ID 7 is not currently registered" in unknown
    assert re.search(r"^1 +ADDRESS +null +unfenced +broker", endpoints, re.MULTILINE)


def test_the_quorum_is_one_voter_that_leads(pair: Pair) -> None:
    for printed in pair.run("kafka-metadata-quorum --bootstrap-server {} describe --status"):
        lines = dict(re.split(r":\s+", line, maxsplit=1) for line in printed.text.splitlines())
        assert lines["LeaderId"] == "1"
        assert (lines["MaxFollowerLag"], lines["MaxFollowerLagTimeMs"]) == ("0", "0")
        assert re.fullmatch(
            r'\[\{"id": 1, "endpoints": \["\w+://ADDRESS"\]\}\]', lines["CurrentVoters"]
        )
        assert lines["CurrentObservers"] == "[]"
    for printed in pair.run("kafka-metadata-quorum --bootstrap-server {} describe --replication"):
        _, one = printed.text.splitlines()
        assert one.split()[0] == "1"
        assert one.split()[-1] == "Leader"


def features(text: str) -> dict[str, tuple[str, str]]:
    """Return supported and finalised levels of each feature."""
    found = {}
    for line in text.splitlines():
        levels, _, _ = line.partition("Epoch:")
        supported, _, finalised = levels.partition("FinalizedVersionLevel:")
        _, name, *limits = supported.split()
        found[name] = (" ".join(limits), finalised.strip())
    return found


def test_each_feature_that_we_have_is_like_kafka_s(pair: Pair) -> None:
    ours, kafkas = pair.run("kafka-features --bootstrap-server {} describe")
    found = features(ours.text)
    assert "transaction.version" in found
    supported, level = found.pop("metadata.version")
    assert (supported.split()[-1], level) == ("4.3-IV0", "4.3-IV0"), "to clients it is a Kafka 4.3"
    assert found.items() <= features(kafkas.text).items()


def test_the_level_of_transactions_goes_down_and_up(same: Same) -> None:
    tool = "kafka-features --bootstrap-server {}"
    down, up = "downgrade --feature transaction.version=1", "upgrade --feature transaction.version="
    assert "can be downgraded to 1" in same(f"{tool} {down} --dry-run")
    assert "was downgraded to 1" in same(f"{tool} {down}")
    assert "was upgraded to 2" in same(f"{tool} {up}2")
    assert "only supports versions 0-2" in same(f"{tool} {up}3")


def apis(text: str) -> dict[str, str]:
    """Return the versions of each API that the broker has."""
    lines = (line.strip(" ,").split(": ", 1) for line in text.splitlines() if line.startswith("\t"))
    return {name.strip(): versions for name, versions in lines if "UNSUPPORTED" not in versions}


def test_each_api_that_we_have_is_there_in_kafka_s_versions(pair: Pair) -> None:
    ours, kafkas = pair.run("kafka-broker-api-versions --bootstrap-server {}")
    assert ours.status == kafkas.status == 0
    assert len(apis(ours.text)) > 40
    others = {key for key, versions in find_left_out().items() if versions is not None}
    numbers = {name: int(name.rpartition("(")[2].rstrip(")")) for name in apis(ours.text)}
    alike = {each for each in apis(ours.text).items() if numbers[each[0]] not in others}
    assert len(alike) == len(apis(ours.text)) - len(others)
    assert alike <= set(apis(kafkas.text).items())
