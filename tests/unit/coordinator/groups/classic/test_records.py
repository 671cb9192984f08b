"""Test that group records are, byte for byte, those of Kafka 4.3's own classes."""

from __future__ import annotations

from dataclasses import replace

from coordinator.groups.classic.state import ClassicGroupMember, GroupForgotten, GroupSaved
from coordinator.groups.state import GroupCodec

KEY = bytes.fromhex("00020006636f756e7473")
V0 = bytes.fromhex(
    "00000008636f6e73756d657200000005000572616e676500026d310000000200026d31000163000a2f3132372e"
    "302e302e310000afc8000000020102000000010300026d32000163000a2f3132372e302e302e310000afc80000"
    "000000000000"
)
V1 = bytes.fromhex(
    "00010008636f6e73756d657200000005000572616e676500026d310000000200026d31000163000a2f3132372e"
    "302e302e31000493e00000afc8000000020102000000010300026d32000163000a2f3132372e302e302e310004"
    "93e00000afc80000000000000000"
)
V2 = bytes.fromhex(
    "00020008636f6e73756d657200000005000572616e676500026d310000018bcfe5687b0000000200026d310001"
    "63000a2f3132372e302e302e31000493e00000afc8000000020102000000010300026d32000163000a2f313237"
    "2e302e302e31000493e00000afc80000000000000000"
)
V3 = bytes.fromhex(
    "00030008636f6e73756d657200000005000572616e676500026d310000018bcfe5687b0000000200026d310002"
    "6931000163000a2f3132372e302e302e31000493e00000afc8000000020102000000010300026d32ffff000163"
    "000a2f3132372e302e302e31000493e00000afc80000000000000000"
)
V4 = bytes.fromhex(
    "000409636f6e73756d6572000000050672616e6765036d310000018bcfe5687b03036d3103693102630b2f3132"
    "372e302e302e31000493e00000afc8030102020300036d320002630b2f3132372e302e302e31000493e00000af"
    "c801010000"
)
HOST = "/127.0.0.1"
EMPTY = bytes.fromhex("00030008636f6e73756d657200000006ffffffff000000000000000100000000")

SAVED = GroupSaved(
    group_id="counts",
    protocol_type="consumer",
    generation=5,
    protocol="range",
    leader="m1",
    phase_started_at_ms=1_700_000_000_123,
    members=(
        ClassicGroupMember("m1", "i1", "c", HOST, 300_000, 45_000, (("range", b"\1\2"),), b"\3"),
        ClassicGroupMember("m2", None, "c", HOST, 300_000, 45_000, (("range", b""),), b""),
    ),
)


def test_a_group_is_written_as_kafka_writes_it() -> None:
    assert GroupCodec().encode_record(SAVED) == (KEY, V3)
    empty = GroupSaved("counts", "consumer", 6, None, None, 1, ())
    assert GroupCodec().encode_record(empty) == (KEY, EMPTY)
    assert GroupCodec().decode_record(KEY, EMPTY) == empty
    assert GroupCodec().encode_record(GroupForgotten("counts")) == (KEY, None)
    assert GroupCodec().decode_record(KEY, None) == GroupForgotten("counts")


def test_every_version_is_read() -> None:
    """Check the defaults of missing fields; the rebalance timeout is the session timeout."""
    assert GroupCodec().decode_record(KEY, V4) == SAVED
    assert GroupCodec().decode_record(KEY, V3) == SAVED
    dynamic = replace(
        SAVED, members=tuple(replace(member, instance_id=None) for member in SAVED.members)
    )
    assert GroupCodec().decode_record(KEY, V2) == dynamic
    assert GroupCodec().decode_record(KEY, V1) == replace(dynamic, phase_started_at_ms=-1)
    hurried = tuple(replace(member, rebalance_timeout_ms=45_000) for member in dynamic.members)
    assert GroupCodec().decode_record(KEY, V0) == replace(
        dynamic, phase_started_at_ms=-1, members=hurried
    )
