"""Look up the schema that a message was written with, and refuse one of another kind.

confluent-kafka takes the schema's id from a message, fetches the schema, and reads on whatever kind
it is of: an Avro message of one long can be JSON too, of another number. So ids are observed where
they are taken, by a setting of confluent-kafka that is public.
"""

from __future__ import annotations

import base64
import binascii
import io
from threading import local
from typing import Any, Literal, NamedTuple

Kind = Literal["AVRO", "JSON", "PROTOBUF"]
"""The registry's name of a kind of schema; those without one are Avro's."""

_FORMATS = {"PROTOBUF": "serialized"}
"""The registry's formats of schemas: of Protobuf, the bytes of a FileDescriptorProto in base64."""
_SUBJECT_STRATEGY, _TOPIC = "subject.name.strategy.type", "TOPIC"
_ID_DESERIALIZER = "schema.id.deserializer"


class WrittenMessage(NamedTuple):
    """Holds a message's parts: the id and the schema of its writer, and the remaining bytes."""

    schema_id: Any
    schema: Any
    content: io.BytesIO
    start: int
    """Where the message itself begins in the content."""

    def read(self) -> bytes:
        """Return the bytes of the message itself."""
        return self.content.getvalue()[self.start :]


class WriterSchemas:
    """Fetches the schemas of messages that a deserializer of confluent-kafka reads."""

    def __init__(self, client: Any, kind: Kind, settings: dict[str, Any]) -> None:
        """Change the settings of a deserializer so that ids are observed where they are taken."""
        from confluent_kafka.schema_registry import dual_schema_id_deserializer

        self._client, self._kind = client, kind
        self._take_id = settings.get(_ID_DESERIALIZER, dual_schema_id_deserializer)
        self._has_subject_of_topic = settings.get(_SUBJECT_STRATEGY) == _TOPIC
        self._schemas: dict[Any, Any] = {}
        self._last = local()
        if callable(self._take_id):  # else confluent-kafka refuses it by name
            settings[_ID_DESERIALIZER] = self._take_id_and_note_schema

    @property
    def last(self) -> WrittenMessage:
        """Return the schema with which this thread's last message was written."""
        found: WrittenMessage = self._last.message
        return found

    def _take_id_and_note_schema(self, data: bytes, context: Any, schema_id: Any) -> io.BytesIO:
        try:
            content: io.BytesIO = self._take_id(data, context, schema_id)
        except Exception:
            # What follows the id may be no place in a file, as in a message of another kind.
            if schema_id.id is not None:
                self._get_or_fetch_schema(schema_id, context)
            raise
        schema = self._get_or_fetch_schema(schema_id, context)
        self._last.message = WrittenMessage(schema_id, schema, content, content.tell())
        return content

    def _get_or_fetch_schema(self, schema_id: Any, context: Any) -> Any:
        """Return the schema of an id. Raises ValueError for one of another kind."""
        key = schema_id.guid if schema_id.id is None else schema_id.id
        schema = self._schemas.get(key)
        if schema is None:
            schema = self._fetch_schema(schema_id, context)
            kind = schema.schema_type or "AVRO"
            if kind != self._kind:
                raise ValueError(
                    f"the message's schema {key} is of {kind}, and this serde reads {self._kind}"
                )
            if self._kind == "PROTOBUF" and not _is_base64(schema.schema_str):
                raise ValueError(
                    f"the registry has the message's schema {key} as text, and does not give the "
                    "bytes of its descriptor (format=serialized), which this serde needs"
                )
            self._schemas[key] = schema
        return schema

    def _fetch_schema(self, schema_id: Any, context: Any) -> Any:
        """Return a schema by the words with which confluent-kafka asks, which keeps the answer."""
        format_ = _FORMATS.get(self._kind)
        if schema_id.id is None:
            return self._client.get_schema_by_guid(str(schema_id.guid), format_)
        subject = f"{context.topic}-{context.field}" if self._has_subject_of_topic else None
        return self._client.get_schema(schema_id.id, subject, format_)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True
