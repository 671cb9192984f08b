"""Wrap confluent-kafka's clients as the runtime uses them: the only package that imports them.

Start reading at `interfaces`, what the runtime needs of each, then `consumer` and `producer`. Every
error that leaves it is one of `streams.errors`, which selects the recovery. Calls that wait
are bounded by `request_timeout_ms`.
"""

from streams.common.message_headers import Header
from streams.runtime.clients.admin import Admin
from streams.runtime.clients.committed_offset import fetch_stable_offset
from streams.runtime.clients.consumer import DataConsumer
from streams.runtime.clients.errors import translate_client_error
from streams.runtime.clients.factory import KafkaClientSupplier
from streams.runtime.clients.group_metadata import encode_group_metadata
from streams.runtime.clients.mechanisms import refuse_gssapi
from streams.runtime.clients.producer import StreamsProducer
from streams.runtime.clients.producer_errors import (
    translate_delivery_error,
    translate_produce_error,
)
from streams.runtime.clients.range_reader import RangeReader
from streams.runtime.clients.retrying import call_with_retries

__all__ = [
    "Admin",
    "DataConsumer",
    "Header",
    "KafkaClientSupplier",
    "RangeReader",
    "StreamsProducer",
    "call_with_retries",
    "encode_group_metadata",
    "fetch_stable_offset",
    "refuse_gssapi",
    "translate_client_error",
    "translate_delivery_error",
    "translate_produce_error",
]
