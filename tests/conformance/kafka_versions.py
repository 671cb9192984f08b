"""List the versions of APIs that Kafka 4.4 advertises, and write down which the broker leaves out.

    python -m tests.conformance.kafka_versions

writes the table of docs/broker.md. `test_api_versions` holds this list to a real node, and a unit
test holds the page to this list and to what the broker advertises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from coordinator.api.router import list_api_versions

PAGE = Path(__file__).parents[2] / "docs" / "broker.md"
BEGIN, END = "<!-- versions left out -->", "<!-- /versions left out -->"

KAFKA_4_4: Mapping[int, tuple[int, int]] = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 5),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 6),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    42: (0, 3),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    55: (0, 2),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    64: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    80: (0, 1),
    81: (0, 0),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    88: (0, 1),
    89: (0, 1),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
    93: (0, 0),
    94: (0, 0),
}
"""The first and the last version of each API: the most that our broker may claim."""

_NAMES: Mapping[int, str] = {
    18: "ApiVersions",
    28: "TxnOffsetCommit",
    42: "DeleteGroups",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
    93: "StreamsGroupTopologyDescriptionUpdate",
    94: "UnregisterController",
}
"""The names of those APIs that our broker does not have as Kafka has them."""


def find_left_out() -> Mapping[int, tuple[int, int] | None]:
    """Return the APIs that our broker has otherwise than Kafka 4.4, with the versions that it has.

    None where it does not have the API.
    """
    ours = {
        each["api_key"]: (each["min_version"], each["max_version"]) for each in list_api_versions()
    }
    return {key: ours.get(key) for key, versions in KAFKA_4_4.items() if ours.get(key) != versions}


def create_table() -> str:
    """Create the table of what is left out, as Markdown."""
    lines = ["| API | Kafka 4.4 | this broker |", "|---|---|---|", *_create_rows()]
    return "\n".join(lines)


def _create_rows() -> Iterator[str]:
    for key, ours in sorted(find_left_out().items()):
        told = "-" if ours is None else _format_versions(ours)
        yield f"| {_NAMES[key]} ({key}) | {_format_versions(KAFKA_4_4[key])} | {told} |"


def _format_versions(versions: tuple[int, int]) -> str:
    first, last = versions
    return f"{first}" if first == last else f"{first} to {last}"


def replace_table(page: str) -> str:
    """Return the page with the table between its markers. Raises ValueError without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} followed by {END}")
    return f"{before}{BEGIN}\n\n{create_table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(replace_table(PAGE.read_text()))
