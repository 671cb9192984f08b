"""Compare Protobuf messages with the schemas that they were written with, which a registry has.

confluent-kafka parses a message as the reader's class whatever its schema says. So for each new
schema (`writer_schemas`) the writer's descriptor is built from the registry, and compared with the
reader's.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from streams.serdes.protobuf_evolution import Compare, ProtobufMismatch, create_comparison
from streams.serdes.writer_schemas import WriterSchemas

_SERIALIZED = "serialized"
"""The registry's format of a schema: the bytes of its FileDescriptorProto, in base64."""


class WriterComparisons:
    """Compares each message with the schema that it was written with."""

    def __init__(
        self, client: Any, schemas: WriterSchemas, descriptor: Any, former_names: Collection[str]
    ) -> None:
        """Take the `descriptor` of the reader's class, which may have had `former_names`."""
        self._client, self._schemas, self._descriptor = client, schemas, descriptor
        self._former_names = frozenset(former_names)
        self._comparisons: dict[Any, Compare | None] = {}

    def refuse_last_message_if_changed(self) -> None:
        """Refuse the message that this thread read last if its class would change it.

        Raises ProtobufMismatch, and confluent-kafka's errors if the registry lacks an import.
        """
        message = self._schemas.last
        schema_id = message.schema_id
        key = (schema_id.id, schema_id.guid, *schema_id.message_indexes)
        try:
            compare = self._comparisons[key]
        except KeyError:
            compare = self._create_comparison(message.schema, schema_id.message_indexes)
            self._comparisons[key] = compare
        if compare is not None:
            compare(message.read())

    def _create_comparison(self, schema: Any, indexes: Sequence[int]) -> Compare | None:
        writer = _find_descriptor(self._client, schema, indexes)
        if _get_local_name(writer) != _get_local_name(self._descriptor) and (
            writer.full_name not in self._former_names
        ):
            raise ProtobufMismatch(
                f"the message is a {writer.full_name}, and {self._descriptor.full_name} is read; "
                "if it was renamed, name it in former_names="
            )
        # Rules of a schema change and encrypt messages: what is in the bytes is not what is read.
        return None if schema.rule_set else create_comparison(writer, self._descriptor)


def _get_local_name(descriptor: Any) -> str:
    """Return a message's full name without its package, such as `Order.Line`."""
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
