"""Write and read Avro messages exactly where confluent-kafka's serialisers would change them.

confluent-kafka keeps its part: settings, subjects, registration, versions, rules of data contracts,
and how a schema's id is written. Between its rules and its id stands `avro_codec`, instead of
fastavro with the reader's schema, which gives back other branches of unions than were written.
Rules see messages as steps have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from confluent_kafka.schema_registry import RuleMode
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.avro import get_inline_tags, transform
from confluent_kafka.schema_registry.common.schema_registry_client import RulePhase
from confluent_kafka.schema_registry.serde import (
    SchemaId,
    ValidationRulesExecution,
    clear_original_key,
    set_original_key,
)
from confluent_kafka.serialization import MessageField, SerializationError
from fastavro.schema import expand_schema

from streams.serdes.avro_codec import AvroSchema, create_reader, create_writer
from streams.serdes.avro_schema import read_schema
from streams.serdes.avro_union_rules import check_unions
from streams.serdes.avro_unions import AvroOptions

_KIND = "AVRO"
"""The registry's name of this kind of schema; a schema without one is of this kind too."""


class ExactAvroSerializer(AvroSerializer):  # type: ignore[misc]  # its stubs are partial
    """Writes messages by `avro_codec`; everything else is AvroSerializer's."""

    def __init__(self, options: AvroOptions, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self._parsed_schema is not None:
            check_unions(read_schema(self._parsed_schema))
        self._options = options
        self._schema_id: Any
        self._writers: dict[int, tuple[Any, Callable[[Any], bytes]]] = {}

    def __call__(self, obj: Any, ctx: Any = None) -> bytes | None:
        """Return the message of an object, or raise ValueError, SchemaRegistryError and others."""
        try:
            return None if obj is None else self._write_message(obj, ctx)
        finally:
            _remember_or_clear_key(obj, ctx)

    def _write_message(self, obj: Any, ctx: Any) -> bytes:
        subject = _find_schema_subject(self, ctx, self._schema_name)
        latest = self._get_reader_schema(subject) if subject else None
        if latest is not None:
            schema_id = SchemaId(_KIND, latest.schema_id, latest.guid)
        else:
            schema_id = self._get_or_register_schema_id(subject)
        value = obj if self._to_dict is None else self._to_dict(obj, ctx)
        parsed = self._parsed_schema if latest is None else self._get_parsed_schema(latest.schema)
        if latest is None:
            if self._validation_enabled():
                self._validate_inline_rules(expand_schema(parsed), value)
            buffer = self._get_or_create_writer(parsed)(value)
        else:
            value = self._apply_rules(ctx, subject, latest.schema, parsed, value)
            buffer = self._execute_rules_with_phase(
                ctx,
                subject,
                RulePhase.ENCODING,
                RuleMode.WRITE,
                None,
                latest.schema,
                self._get_or_create_writer(parsed)(value),
                None,
                None,
            )
        return cast(bytes, self._schema_id_serializer(buffer, ctx, schema_id))

    def _get_or_register_schema_id(self, subject: str | None) -> Any:
        """Return the id of the serde's schema, and register or look it up for a new subject."""
        if subject is None or subject in self._known_subjects:
            return self._schema_id
        with self._known_subjects_lock:
            if subject not in self._known_subjects:
                find = (
                    self._registry.register_schema_full_response
                    if self._auto_register
                    else self._registry.lookup_schema
                )
                found = find(subject, self._schema, normalize_schemas=self._normalize_schemas)
                self._schema_id = SchemaId(_KIND, found.schema_id, found.guid)
                self._known_subjects.add(subject)
        return self._schema_id

    def _apply_rules(
        self, ctx: Any, subject: str | None, schema: Any, parsed: Any, value: Any
    ) -> Any:
        """Apply the rules of a registered schema to a message, and return what becomes of it."""
        before, after = (
            self._validation_enabled(getattr(ValidationRulesExecution, f"{when}_DOMAIN_RULES"))
            for when in ("BEFORE", "AFTER")
        )
        if schema.rule_set is None and not before and not after:
            return value
        expanded = expand_schema(parsed)
        if before:
            self._validate_inline_rules(expanded, value)
        value = self._execute_rules(
            ctx,
            subject,
            RuleMode.WRITE,
            None,
            schema,
            value,
            get_inline_tags(parsed),
            lambda rule_ctx, change, message: transform(rule_ctx, expanded, message, change),
        )
        if after:
            self._validate_inline_rules(expanded, value)
        return value

    def _get_or_create_writer(self, parsed: Any) -> Callable[[Any], bytes]:
        """Return the function that writes messages of a schema, which confluent-kafka keeps."""
        known = self._writers.get(id(parsed))
        if known is None or known[0] is not parsed:
            known = (parsed, create_writer(AvroSchema(parsed), self._options))
            self._writers[id(parsed)] = known
        return known[1]


class ExactAvroDeserializer(AvroDeserializer):  # type: ignore[misc]  # its stubs are partial
    """Reads messages by `avro_codec`; everything else is AvroDeserializer's."""

    def __init__(self, options: AvroOptions, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self._reader_schema is not None:
            check_unions(read_schema(self._reader_schema))
        self._options = options
        self._schemas: dict[int, tuple[Any, AvroSchema]] = {}
        self._readers: dict[tuple[int, int], Callable[[bytes], Any]] = {}

    def __call__(self, data: bytes | None, ctx: Any = None) -> Any:
        """Return the object of a message, or raise ValueError, SchemaRegistryError and others."""
        try:
            return None if data is None else self._read_message(data, ctx)
        finally:
            _remember_or_clear_key(data, ctx)

    def _read_message(self, data: bytes, ctx: Any) -> Any:
        """Find the schema of a message and read it."""
        subject = _find_schema_subject(self, ctx, None)
        schema_id = SchemaId(_KIND)
        payload = self._schema_id_deserializer(data, ctx, schema_id)
        written = self._get_writer_schema(schema_id, subject)
        if written.schema_type not in (None, _KIND):
            raise SerializationError(
                f"the message's schema {schema_id.id or schema_id.guid} is of "
                f"{written.schema_type}, and this serde reads {_KIND}"
            )
        writer = self._get_or_parse_schema(self._get_parsed_schema(written))
        if subject is None and isinstance(writer.parsed, dict):
            subject = _find_schema_subject(self, ctx, writer.parsed.get("name"))
        latest = self._get_reader_schema(subject) if subject else None
        message = payload if isinstance(payload, bytes) else payload.read()
        if written.rule_set is not None and subject is not None:
            message = self._execute_rules_with_phase(
                ctx,
                subject,
                RulePhase.ENCODING,
                RuleMode.READ,
                None,
                written,
                message,
                None,
                None,
                data,
            )
            message = message if isinstance(message, bytes) else message.read()
        return self._read_by_schema(message, ctx, subject, written, writer, latest, data)

    def _read_by_schema(
        self,
        message: bytes,
        ctx: Any,
        subject: str | None,
        written: Any,
        writer: AvroSchema,
        latest: Any,
        data: bytes,
    ) -> Any:
        """Read a message by the latest schema, the serde's or else the one it was written with."""
        raw_schema, reader, migrations = written, writer, None
        if latest is not None:
            migrations = self._get_migrations(subject, written, latest, None)
            raw_schema = latest.schema
            reader = self._get_or_parse_schema(self._get_parsed_schema(latest.schema))
        elif self._reader_schema is not None:
            raw_schema, reader = self._schema, self._get_or_parse_schema(self._reader_schema)
        if migrations:
            value = self._get_or_create_reader(writer, writer)(message)
            value = self._execute_migrations(ctx, subject, migrations, value)
        else:
            value = self._get_or_create_reader(writer, reader)(message)
        if raw_schema.rule_set is not None and subject is not None:
            expanded = expand_schema(reader.parsed)
            value = self._execute_rules(
                ctx,
                subject,
                RuleMode.READ,
                None,
                raw_schema,
                value,
                get_inline_tags(reader.parsed),
                lambda rule_ctx, change, found: transform(rule_ctx, expanded, found, change),
                data,
            )
        return value if self._from_dict is None else self._from_dict(value, ctx)

    def _get_or_parse_schema(self, parsed: Any) -> AvroSchema:
        known = self._schemas.get(id(parsed))
        if known is None or known[0] is not parsed:
            known = (parsed, AvroSchema(parsed))
            self._schemas[id(parsed)] = known
        return known[1]

    def _get_or_create_reader(
        self, writer: AvroSchema, reader: AvroSchema
    ) -> Callable[[bytes], Any]:
        key = (id(writer), id(reader))
        found = self._readers.get(key)
        if found is None:
            found = self._readers[key] = create_reader(writer, reader, self._options)
        return found


def _remember_or_clear_key(key: Any, ctx: Any) -> None:
    """Remember a key for the rules of the value that follows it, as confluent-kafka does."""
    if ctx is not None and ctx.field == MessageField.KEY:
        set_original_key(key)
    else:
        clear_original_key()


def _find_schema_subject(serde: Any, ctx: Any, record_name: str | None) -> str | None:
    """Return the subject that a serde's strategy names; None if it needs the record's name."""
    if ctx is None:
        return None
    find = serde._subject_name_func
    if serde._strategy_accepts_client:
        return cast("str | None", find(ctx, record_name, serde._registry, serde._subject_name_conf))
    return cast("str | None", find(ctx, record_name))
