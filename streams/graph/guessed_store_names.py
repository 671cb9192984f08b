"""Say what replaces the names of Kafka Streams' Stores, StoreBuilder and Materialized."""

from __future__ import annotations

NAMES_OF_STORES = {
    "as_": "the name is the first argument: Store.persistent('name')",
    "in_memory_key_value_store": "Store.in_memory('name')",
    "in_memory_session_store": "Store.session('name', ..., persistent=False)",
    "in_memory_window_store": "Store.window('name', ..., persistent=False)",
    "key_value_store_builder": "Store.persistent('name', key=serdes...., value=serdes....)",
    "lru_map": "ttl= bounds a store; one bounded by size would lose rows",
    "persistent_key_value_store": "Store.persistent('name')",
    "persistent_session_store": "Store.session('name', retention=...)",
    "persistent_timestamped_key_value_store": "Store.persistent('name'): entry(key) has the time",
    "persistent_timestamped_window_store": "Store.window('name', size=..., retention=...)",
    "persistent_versioned_key_value_store": "Store.versioned('name', history=...)",
    "persistent_window_store": "Store.window('name', size=..., retention=...)",
    "session_store_builder": "Store.session('name', retention=..., key=..., value=...)",
    "timestamped_key_value_store_builder": "Store.persistent('name', key=..., value=...)",
    "timestamped_window_store_builder": "Store.window('name', ..., key=..., value=...)",
    "versioned_key_value_store_builder": "Store.versioned('name', history=..., key=..., value=...)",
    "window_store_builder": "Store.window('name', ..., key=..., value=...)",
    "with_caching_disabled": "the argument caching=False",
    "with_caching_enabled": "it is on; the argument caching=False turns it off",
    "with_key_serde": "the argument key=",
    "with_logging_disabled": "the argument logged=False",
    "with_logging_enabled": "the argument logged={'name': setting}",
    "with_retention": "the argument retention=",
    "with_value_serde": "the argument value=",
}
"""The text to write instead, by Kafka Streams' name in Python's spelling."""
