"""Compare Protobuf messages with the schemas that they were written with, which a registry has.

A message names its schema by the id that it begins with. confluent-kafka takes the id from it, but
parses the rest as the reader's class whatever the schema says. So ids are observed, and for each
new one the writer's descriptor is built from the registry and compared with the reader's.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterable, Sequence
from threading import local
from typing import Any

from streams.serdes.protobuf_evolution import Compare, ProtobufMismatch, create_comparison

_SERIALIZED = "serialized"
"""The registry's format of a schema: the bytes of its FileDescriptorProto, in base64."""
_SUBJECT_STRATEGY, _TOPIC = "subject.name.strategy.type", "TOPIC"
_ID_DESERIALIZER = "schema.id.deserializer"


class WriterComparisons:
    """Compares each message with the schema that it was written with.

    confluent-kafka takes ids from messages on the thread that reads, so the last one is kept for
    each thread.
    """

    def __init__(self, client: Any, descriptor: Any, former_names: Collection[str]) -> None:
        """`descriptor` is that of the reader's class, which may have had `former_names`."""
        self._client, self._descriptor = client, descriptor
        self._former_names = frozenset(former_names)
        self._comparisons: dict[Any, Compare | None] = {}
        self._last = local()
        self._has_subject_of_topic = False

    def observe_ids(self, settings: dict[str, Any]) -> None:
        """Change the settings of a deserializer so that ids are observed where they are taken."""
        from confluent_kafka.schema_registry import dual_schema_id_deserializer

        take_id = settings.get(_ID_DESERIALIZER, dual_schema_id_deserializer)
        self._has_subject_of_topic = settings.get(_SUBJECT_STRATEGY) == _TOPIC
        if not callable(take_id):
            return  # confluent-kafka refuses it by name
        last = self._last

        def take_observed(data: bytes, context: Any, schema_id: Any) -> io.BytesIO:
            content: io.BytesIO = take_id(data, context, schema_id)
            last.schema_id, last.content, last.start = schema_id, content, content.tell()
            return content

        settings[_ID_DESERIALIZER] = take_observed

    def check(self, context: Any) -> None:
        """Refuse the message whose id this thread took last if its class would change it.

        Raises ProtobufMismatch, and confluent-kafka's errors if the registry has no such schema.
        """
        last = self._last
        schema_id = last.schema_id
        key = (schema_id.id, schema_id.guid, *schema_id.message_indexes)
        try:
            compare = self._comparisons[key]
        except KeyError:
            compare = self._comparisons[key] = self._create_comparison(schema_id, context)
        if compare is not None:
            compare(last.content.getvalue()[last.start :])

    def _create_comparison(self, schema_id: Any, context: Any) -> Compare | None:
        schema = self._fetch_schema(schema_id, context)
        writer = _find_descriptor(self._client, schema, schema_id.message_indexes)
        if _get_local_name(writer) != _get_local_name(self._descriptor) and (
            writer.full_name not in self._former_names
        ):
            raise ProtobufMismatch(
                f"the message is a {writer.full_name}, and {self._descriptor.full_name} is read; "
                "if it was renamed, name it in former_names="
            )
        # Rules of a schema change and encrypt messages: what is in the bytes is not what is read.
        return None if schema.rule_set else create_comparison(writer, self._descriptor)

    def _fetch_schema(self, schema_id: Any, context: Any) -> Any:
        """Return a schema that confluent-kafka has fetched already, by the same words."""
        if schema_id.id is None:
            return self._client.get_schema_by_guid(str(schema_id.guid), _SERIALIZED)
        subject = f"{context.topic}-{context.field}" if self._has_subject_of_topic else None
        return self._client.get_schema(schema_id.id, subject, _SERIALIZED)


def _get_local_name(descriptor: Any) -> str:
    """Return the name of a message in its file, as Order.Line; packages are renamed freely."""
    package = descriptor.file.package
    return str(descriptor.full_name[len(package) + 1 :] if package else descriptor.full_name)


def _find_descriptor(client: Any, schema: Any, indexes: Sequence[int]) -> Any:
    """Return the descriptor of the message that is at `indexes` in a schema's file."""
    from google.protobuf.descriptor_pool import DescriptorPool

    pool, file = DescriptorPool(), _parse_file(schema, "default")
    _add_imports(pool, client, file, schema.references or (), set())
    pool.Add(file)
    first, *inner = indexes
    message = file.message_type[first]
    names = [file.package, message.name] if file.package else [message.name]
    for index in inner:
        message = message.nested_type[index]
        names.append(message.name)
    return pool.FindMessageTypeByName(".".join(names))


def _parse_file(schema: Any, name: str) -> Any:
    """Return a schema as the FileDescriptorProto of a file of that name."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.standard_b64decode(schema.schema_str))
    file.name = name
    return file


def _add_imports(
    pool: Any, client: Any, file: Any, references: Iterable[Any], added: set[str]
) -> None:
    """Add the files that one imports to a pool, those of Protobuf itself from this process."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    referenced = {each.name: each for each in references}
    for name in file.dependency:
        if name in added:
            continue
        added.add(name)
        if name in referenced:
            found = referenced[name]
            version = client.get_version(found.subject, found.version, True, _SERIALIZED)
            imported = _parse_file(version.schema, name)
            _add_imports(pool, client, imported, version.schema.references or (), added)
        else:
            known = descriptor_pool.Default().FindFileByName(name)
            imported = descriptor_pb2.FileDescriptorProto.FromString(known.serialized_pb)
            _add_imports(pool, client, imported, (), added)
        pool.Add(imported)
