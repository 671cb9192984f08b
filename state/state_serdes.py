"""Serialise and deserialise the keys and values of one store, and name what a serde refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from state.entry import SCALARS
from state.errors import EarlierWriteRefused, create_store_serde_error


class StoreCodecs(NamedTuple):
    """Holds the functions that serialise and deserialise the keys and values of a store.

    What a function refuses is reported as StoreSerdeError.
    """

    encode_key: Callable[[Any], bytes]
    decode_key: Callable[[bytes], Any]
    encode_value: Callable[[Any], bytes]
    decode_value: Callable[[bytes], Any]


class StateSerdes:
    """Serialises keys and values of one store, and names it in errors."""

    def __init__(self, store_name: str, codecs: StoreCodecs) -> None:
        self._store_name = store_name
        self._encode_key, _, self._encode_value, self._decode_value = codecs

    def serialize_key(self, key: Any) -> bytes:
        """Return the bytes of `key`, or raise StoreSerdeError."""
        try:
            return self._encode_key(key)
        except Exception as error:
            raise create_store_serde_error(self._store_name, "key", key, error) from error

    def serialize_value(self, value: Any) -> bytes:
        """Return the bytes of `value`, or raise StoreSerdeError."""
        try:
            return self._encode_value(value)
        except Exception as error:
            raise create_store_serde_error(self._store_name, "value", value, error) from error

    def check_replaced_value(self, old_value: Any, new_value: Any) -> None:
        """Raise EarlierWriteRefused if the serde refuses the uncommitted value that is replaced.

        It would never be serialised, since another takes its place in the same transaction.
        """
        if old_value is not None and old_value is not new_value and type(old_value) not in SCALARS:
            try:
                self._encode_value(old_value)
            except Exception as error:
                raise self._create_earlier_write_refused(old_value, error) from error

    def copy_value(self, value: Any) -> Any:
        """Return a copy of an uncommitted value, made from its bytes, or raise EarlierWriteRefused.

        A scalar is returned itself.
        """
        if type(value) in SCALARS:
            return value
        try:
            return self._decode_value(self._encode_value(value))
        except Exception as error:
            raise self._create_earlier_write_refused(value, error) from error

    def _create_earlier_write_refused(self, value: Any, error: Exception) -> EarlierWriteRefused:
        return EarlierWriteRefused(
            str(create_store_serde_error(self._store_name, "value", value, error))
        )
