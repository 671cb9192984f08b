"""Define the cut: one moment that is the same for an application's inputs, state and outputs.

A cut is a small value. It is taken once (`read_cut`), can be saved as JSON, and names what is to be
read as of that moment while the application runs on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import WrittenRange

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class StoreCut:
    """Represents a store at a cut: its changelog and the position in each of its partitions.

    `changelog` is the topic that the store is restored from. A position is the first offset that is
    not in the store. `expired` are the offsets up to which partitions may begin without a loss, 0
    where none is named.
    """

    changelog: str
    positions: Mapping[int, int]
    expired: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Represents one moment of an application by offsets, each the first that is not in the cut.

    application_id: whose it is, which is the group's name
    taken_ms: the wall clock when the offsets were fetched, in ms since 1970
    offsets: of each partition that the application reads, repartition topics included; 0 where
        nothing was committed
    stores: by name; those with a changelog, or with a topic in place of one
    ends: of each partition of the topics that it writes, repartition topics included, changelogs
        not; records of a repartition topic from `offsets` up to its end were in transit. None
        where the ends are unknown, since the application went on meanwhile and keeps no ledger
    beyond: runs of offsets below `ends` that are not in the cut: where several threads write to
        one partition, a transaction of the cut may end above one that isn't in it
    ledger_end: of the ledger's partition: the ledger's entries that are in the cut are below it,
        together with entries that are not (see `members`); None without a ledger
    commits: of each partition that the application reads the number of the commit that brought its
        offset (see `streams.runtime.offsets.offset_metadata`), 0 where nothing was
        committed; only those for which the number is known
    topic_ids: of the topics that are named above, the ids that they had: a topic that is created
        again is another one. Empty for brokers without ids
    exact: False where the committed offsets name no positions of stores, as those of Kafka
        Streams: then the positions are the ends of the changelogs at that time
    """

    application_id: str
    taken_ms: int
    offsets: Mapping[Partition, int]
    stores: Mapping[str, StoreCut] = field(default_factory=dict)
    ends: Mapping[Partition, int] | None = None
    beyond: Mapping[Partition, tuple[WrittenRange, ...]] = field(default_factory=dict)
    ledger_end: int | None = None
    exact: bool = True
    commits: Mapping[Partition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def topics(self) -> set[str]:
        """Return the topics that the cut names, but the ledger."""
        return {
            *(topic for topic, _ in (*self.offsets, *(self.ends or {}))),
            *(store.changelog for store in self.stores.values()),
        }

    def to_json(self) -> str:
        """Return the cut as JSON text, which `from_json` reads."""
        return orjson.dumps(
            {
                "format": _FORMAT,
                "application_id": self.application_id,
                "taken_ms": self.taken_ms,
                "offsets": _group_by_topic(self.offsets),
                "stores": {
                    name: {
                        "changelog": store.changelog,
                        "positions": {str(p): at for p, at in sorted(store.positions.items())},
                        "expired": {str(p): at for p, at in sorted(store.expired.items())},
                    }
                    for name, store in sorted(self.stores.items())
                },
                "ends": None if self.ends is None else _group_by_topic(self.ends),
                "beyond": _group_by_topic(
                    {p: [[*r] for r in runs] for p, runs in self.beyond.items()}
                ),
                "ledger_end": self.ledger_end,
                "exact": self.exact,
                "commits": _group_by_topic(self.commits),
                "topic_ids": dict(sorted(self.topic_ids.items())),
            }
        ).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Cut:
        """Create a cut from the JSON text of `to_json`. Raises ConfigError for anything else."""
        try:
            fields = orjson.loads(text)
            if fields["format"] != _FORMAT:
                raise ConfigError(
                    f"a cut of format {fields['format']!r}: this version reads {_FORMAT}; take it "
                    "anew, or use the version that took it"
                )
            return cls(
                application_id=str(fields["application_id"]),
                taken_ms=int(fields["taken_ms"]),
                offsets=_parse_offsets(fields["offsets"]),
                stores={
                    name: StoreCut(
                        str(store["changelog"]),
                        {int(p): int(at) for p, at in store["positions"].items()},
                        {int(p): int(at) for p, at in store["expired"].items()},
                    )
                    for name, store in fields["stores"].items()
                },
                ends=None if fields["ends"] is None else _parse_offsets(fields["ends"]),
                beyond={
                    Partition(topic, int(number)): tuple(
                        WrittenRange(*map(int, run)) for run in runs
                    )
                    for topic, numbers in fields["beyond"].items()
                    for number, runs in numbers.items()
                },
                ledger_end=fields["ledger_end"],
                exact=bool(fields["exact"]),
                commits=_parse_offsets(fields["commits"]),
                topic_ids={t: str(each) for t, each in fields["topic_ids"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"this is no cut, as read_cut(...).to_json() writes it: {error!r}"
            ) from (error)

    def save(self, path: Path) -> None:
        """Write the cut to a file as JSON, as a whole or not at all."""
        beside = path.with_name(path.name + ".part")
        beside.write_text(self.to_json())
        beside.replace(path)

    @classmethod
    def load(cls, path: Path) -> Cut:
        """Read a cut from a file that `save` has written. Raises ConfigError if that fails."""
        try:
            return cls.from_json(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"the cut in {path} can't be read: {error.strerror}") from error


def _group_by_topic(values: Mapping[Partition, Any]) -> dict[str, dict[str, Any]]:
    grouped: dict[str, dict[str, Any]] = {}
    for (topic, number), value in sorted(values.items()):
        grouped.setdefault(topic, {})[str(number)] = value
    return grouped


def _parse_offsets(offsets_by_topic: Mapping[str, Any]) -> dict[Partition, int]:
    return {
        Partition(topic, int(number)): int(offset)
        for topic, numbers in offsets_by_topic.items()
        for number, offset in numbers.items()
    }
