"""Feed hostile bytes to the production router over real files, without sockets.

`Victim.feed` fails for whatever must not happen: an exception that is no way to say no, an answer
that a client can't read, something that the broker itself logged as an error, too long a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Self

from kio.index import load_response_schema
from kio.serial import entity_reader
from kio.serial.errors import OutOfBoundValue

from coordinator.errors import Code
from coordinator.wire.codec import MalformedRequest, load_schema, read_request_header
from coordinator.wire.connection import Disconnect
from coordinator.wire.send_buffer import Answer
from tests.fuzz.requests import COMPACTED, NAME, corpus
from tests.unit.coordinator.api.client import Client, whole

API_VERSIONS = 18
# A hundred times what the slowest takes here: for a machine that others use too.
SECONDS_MAX = 2.0


class Found(AssertionError):
    """Says that something happened that must not; the message carries the frame."""


class _Errors(logging.Handler):
    """Collects what the broker logs as an error: exceptions that nobody expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(logging.Formatter().format(record))


class Victim:
    """Runs a broker with a topic, a group and a transactional id of one name."""

    def __init__(self, data_dir: Path) -> None:
        self._client = Client(data_dir)
        self._runner = asyncio.Runner()
        self._errors = _Errors()
        self.corpus = corpus(self._client.create(NAME, 2))
        self._client.create(COMPACTED, cleanup_policy="compact")
        self.seconds_max = SECONDS_MAX
        self.refused = self.answered = 0

    def __enter__(self) -> Self:
        logging.getLogger("coordinator").addHandler(self._errors)
        for frame in self.corpus:  # so that there is a producer, a transaction, an offset
            self.feed(frame)
        if self._client.broker.topics.get(NAME) is None:  # one of them deletes it
            self._client.create(NAME, 2)
        self.refused = self.answered = 0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        logging.getLogger("coordinator").removeHandler(self._errors)
        self._runner.close()
        self._client.broker.close()

    def feed(self, frame: bytes) -> None:
        """Feed one request. Raises Found if the broker does what it must not."""
        begin = time.process_time()
        try:
            answer = self._runner.run(self._dispatch(frame))
        except (MalformedRequest, Disconnect) as refusal:
            self.refused += 1
            if "MemoryError" in str(refusal):
                raise Found(f"{refusal} of {frame.hex()}") from refusal
        except Exception as error:
            raise Found(f"{traceback.format_exc()} of {frame.hex()}") from error
        else:
            self.answered += 1
            self._check_answer(frame, answer)
        seconds = time.process_time() - begin
        if seconds > self.seconds_max:
            raise Found(f"{seconds:.1f} s for {frame.hex()}")
        if self._errors.records:
            raise Found(f"{self._errors.records} of {frame.hex()}")
        if self._client.broker.failure is not None:
            raise Found(f"{self._client.broker.failure!r} of {frame.hex()}")

    async def _dispatch(self, frame: bytes) -> Answer:
        """Return the answer; None if there is none, or none yet after some turns of the loop."""
        answer = self._client.send_bytes(frame)
        if answer is None or isinstance(answer, bytes | list):
            return answer
        waiting = asyncio.ensure_future(answer)
        for _ in range(3):
            if waiting.done():
                return waiting.result()
            await asyncio.sleep(0)
        waiting.cancel()  # as when its client has gone
        await asyncio.sleep(0)
        return None

    def _check_answer(self, frame: bytes, answer: Answer) -> None:
        if answer is None:
            return
        header = read_request_header(frame)
        data = whole(answer)
        version = header.version if load_schema(header.api_key, header.version) else 0
        if header.api_key == API_VERSIONS and _code(data) == Code.UNSUPPORTED_VERSION:
            version = 0
        response_type = load_response_schema(header.api_key, version)
        at = 9 if response_type.__header_schema__.__flexible__ else 8
        try:
            _, size = entity_reader(response_type)(data, at)
        except OutOfBoundValue:
            return  # kio has no time that is none (-1), as DescribeTransactions may answer
        except Exception as error:
            raise Found(f"the answer {data.hex()} to {frame.hex()} is unreadable") from error
        if at + size != len(data) or int.from_bytes(data[:4], "big") != len(data) - 4:
            raise Found(f"the answer {data.hex()} to {frame.hex()} has another length")


def _code(answer: bytes) -> int:
    return int.from_bytes(answer[8:10], "big", signed=True)
