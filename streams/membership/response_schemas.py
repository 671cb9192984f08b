"""Define response schemas in place of those of kio that can't read what brokers send.

DescribeTransactions (KIP-664): the start time is -1 while no transaction is open, and kio 0.6 reads
no negative times. (kio reads the types of the fields: no postponed annotations here.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kio.schema.describe_transactions.v0.response import TopicData
from kio.schema.errors import ErrorCode
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import ProducerId, TransactionalId
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32Timedelta, i64

DESCRIBE_TRANSACTIONS_API_KEY = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTransaction:
    """Represents a transaction in kio's schema, with a number as start time, which may be -1."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(DESCRIBE_TRANSACTIONS_API_KEY)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    transactional_id: TransactionalId = field(metadata={"kafka_type": "string"})
    transaction_state: str = field(metadata={"kafka_type": "string"})
    transaction_timeout: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    transaction_start_time: i64 = field(metadata={"kafka_type": "int64"})
    producer_id: ProducerId = field(metadata={"kafka_type": "int64"})
    producer_epoch: i16 = field(metadata={"kafka_type": "int16"})
    topics: tuple[TopicData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponse:
    """Represents a DescribeTransactions response in kio's schema, made of DescribedTransaction."""

    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(DESCRIBE_TRANSACTIONS_API_KEY)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    transaction_states: tuple[DescribedTransaction, ...]


RESPONSE_SCHEMAS: Mapping[tuple[int, int], Any] = {
    (DESCRIBE_TRANSACTIONS_API_KEY, 0): DescribeTransactionsResponse
}
"""The response schemas by API key and version."""
