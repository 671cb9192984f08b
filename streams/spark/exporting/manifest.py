"""Represent an export by a manifest, which lists its files and names the export that it continues.

A manifest names its files by size and checksum, itself by a checksum of its content, and the one
before it by that one's. So manifests are a chain, in which nothing can be changed or left out
unnoticed, except for its end: without the newest export it is the chain that was there before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark.cuts.cut import Cut
from streams.spark.source.ranges import OffsetRange

MANIFEST_NAME = "_manifest.json"
"""The name of the manifest's file. Spark reads no file whose name begins with `_`."""
_FORMAT_VERSION = 1


class TopicRole(StrEnum):
    """Names a topic's role in the application: changelog, output or input."""

    CHANGELOG = "changelog"
    INPUT = "input"
    OUTPUT = "output"


class ExportEnd(StrEnum):
    """Says how far a topic was exported: to the cut, or to its last stable offset."""

    CUT = "cut"
    LAST_STABLE = "last stable offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTopic:
    """Describes an exported topic: its role, its id, its columns and where the export ends.

    `stores`: those of which it is the changelog. `topic_id` tells it from one of the same name made
    later. `columns`: Spark's schema of its files. `ends`: of each partition, the first offset that
    is not exported yet.
    """

    role: TopicRole
    topic_id: str
    until: ExportEnd
    columns: str
    ends: Mapping[int, int]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """Describes a file with the records of one range of offsets.

    `path`: below the directory of its export.
    """

    path: str
    topic: str
    partition: int
    first: int
    until: int
    records: int
    no_records: int
    """Offsets of the range that hold none: markers, aborted records, what was compacted away."""
    bytes: int
    sha256: str

    @property
    def offset_range(self) -> OffsetRange:
        """Return the range of offsets whose records the file has."""
        return OffsetRange(self.topic, self.partition, self.first, self.until)


def _decode_cut(content: Any) -> Cut:
    return content if isinstance(content, Cut) else Cut.from_json(orjson.dumps(content))


def _encode_cut(cut: Cut) -> Any:
    return orjson.loads(cut.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportManifest:
    """Describes one export and names the previous one by its checksum.

    Numbers begin with 1; `previous` is the checksum of the export before, None for the first.
    `versions`: of Python and the packages that have written it.
    """

    number: int
    previous: str | None
    created_ms: int
    application_id: str
    cut: Annotated[Cut, PlainValidator(_decode_cut), PlainSerializer(_encode_cut)]
    topics: Mapping[str, ExportedTopic]
    files: tuple[ExportedFile, ...]
    versions: Mapping[str, str]

    @property
    def records(self) -> int:
        """Return the number of records in all files."""
        return sum(file.records for file in self.files)

    @property
    def sha256(self) -> str:
        """Return the checksum of the content, however the JSON text is laid out."""
        return _compute_checksum(self._to_content())

    def end_offsets(self) -> dict[Partition, int]:
        """Return the first offset of each partition that is not exported yet."""
        return {
            Partition(name, number): end
            for name, topic in self.topics.items()
            for number, end in topic.ends.items()
        }

    def to_json(self) -> bytes:
        """Return the manifest with its checksum as text, which `from_json` parses."""
        whole = {"sha256": self.sha256, "manifest": self._to_content()}
        return orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"

    @classmethod
    def from_json(cls, text: bytes, name: str) -> ExportManifest:
        """Parse a manifest that `to_json` encoded; `name` is for messages.

        Raises ConfigError for anything else, and where the content is not that of the checksum.
        """
        try:
            whole = orjson.loads(text)
            content = whole["manifest"]
            if content["format"] != _FORMAT_VERSION:
                raise ConfigError(
                    f"{name} has format {content['format']!r}: this version reads "
                    f"{_FORMAT_VERSION}; use the version that has written it, or export anew"
                )
            if _compute_checksum(content) != whole["sha256"]:
                raise ConfigError(f"{name} was changed: its content is not what its checksum is of")
            return _ADAPTER.validate_python(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{name} is no manifest of an export: {error!r}") from error

    def _to_content(self) -> dict[str, Any]:
        """Return all fields of the manifest as values that JSON can represent."""
        return {"format": _FORMAT_VERSION, **_ADAPTER.dump_python(self, mode="json")}


_ADAPTER = TypeAdapter(ExportManifest)


def build_file_path(offset_range: OffsetRange) -> str:
    """Return the path of a range's file below the directory of its export, in Hive's layout."""
    offsets = f"{offset_range.first:020}-{offset_range.until:020}.parquet"
    return str(Path(f"topic={offset_range.topic}", f"partition={offset_range.partition}", offsets))


def _compute_checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's content, encoded as JSON with sorted keys."""
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
