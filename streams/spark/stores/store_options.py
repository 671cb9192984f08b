"""Derive the data source's options for reading a store of an App from its topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams import serdes
from streams.errors import ConfigError
from streams.graph.nodes import StoreKind, StoreSpec
from streams.serdes import JsonSerde, Serde
from streams.spark.application_access import resolve_access

if TYPE_CHECKING:
    from streams.app import App

_SERDE_NAMES = {
    each.name for each in (serdes.bytes, serdes.string, serdes.int32, serdes.int64, serdes.float64)
}
_DEFAULT_RETENTION_MS = 86_400_000


def options_for(app: App, store: str) -> dict[str, str]:
    """Return the options of the data source for reading a store of an App.

    They say how the brokers are reached, by the App's `connection` too, where the store is, its
    serdes, its windows and for how long it keeps rows. Options may be added or changed.

    JSON is read as `string`, since a serde doesn't say what fields there are: give `json` and a
    schema in its place. A value whose serde Spark doesn't have (pickle, a registry's, your own) is
    read as `bytes`.

    Raises: ConfigError for a store that isn't there or can't be read.
    """
    spec = _require_readable_store(app, store)
    return {
        **resolve_access(app.config).to_options(),
        "application_id": app.application_id,
        "store": store,
        "key": _name_serde_option(spec.key),
        "value": _name_serde_option(spec.value),
        **build_layout_options(spec),
    }


def build_layout_options(spec: StoreSpec) -> dict[str, str]:
    """Return the options that describe a store's rows: windows, versions and retention."""
    options: dict[str, str] = {}
    match spec.kind:
        case StoreKind.WINDOW:
            options["windowed"] = "time"
            options["window_size_ms"] = str(spec.window_size_ms or 1)
        case StoreKind.SESSION:
            options["windowed"] = "session"
        case StoreKind.VERSIONED:
            options["versioned"] = "latest"
    kept_ms = _store_retention_ms(spec)
    if kept_ms is not None:
        options["retention_ms"] = str(kept_ms)
    return options


def build_window_options(serde: Serde[Any]) -> dict[str, str]:
    """Return the options that describe the windowed keys of a serde."""
    kind, _, rest = serde.name.partition("(")
    if kind == "session_windowed":
        return {"windowed": "session"}
    size = rest.rpartition(", ")[2].rstrip(")")
    return {"windowed": "time", **({"window_size_ms": size} if size.isdigit() else {})}


def _require_readable_store(app: App, store: str) -> StoreSpec:
    """Return the spec of a store. Raises ConfigError if it is missing or can't be read."""
    topology = app.topology()
    stores = {spec.name: spec for sub in topology.subtopologies for spec in sub.stores}
    for table in topology.global_tables:
        if table.store.name == store:
            raise ConfigError(
                f"store {store!r} is a copy of the whole of topic {table.topic!r}, which each "
                f"worker has as of another moment: read it with topic={table.topic!r}"
            )
    if store not in stores:
        raise ConfigError(
            f"application {app.application_id!r} has no store {store!r}: it has "
            f"{', '.join(sorted(stores)) or 'none'}"
        )
    spec = stores[store]
    if not spec.logged:
        raise ConfigError(f"store {store!r} has no changelog (logged=False), so it can't be read")
    if spec.kind is StoreKind.BUFFER:
        raise ConfigError(
            f"store {store!r} holds what waits for its time in a step, in a layout of its own: it "
            "is no table"
        )
    return spec


def _name_serde_option(serde: Serde[object]) -> str:
    """Return the option value for a serde, which is `bytes` if the data source lacks the serde."""
    if isinstance(serde, JsonSerde):
        return "string"
    is_ours = serde.binder is None and serde.inner is None
    kind, _, _ = serde.name.partition("(")
    if is_ours and kind == serdes.json.name:
        return "string"
    return serde.name if is_ours and serde.name in _SERDE_NAMES else "bytes"


def _store_retention_ms(spec: StoreSpec) -> int | None:
    """Return how long a store keeps rows, defaults included, or None if it keeps them always."""
    match spec.kind:
        case StoreKind.WINDOW:
            kept_ms = _DEFAULT_RETENTION_MS if spec.retention_ms is None else spec.retention_ms
            return max(kept_ms, spec.window_size_ms or 0)
        case StoreKind.SESSION:
            return _DEFAULT_RETENTION_MS if spec.retention_ms is None else spec.retention_ms
        case StoreKind.VERSIONED:
            if spec.source_topic is None:
                return None  # the changelog has only what the store kept, in any order
            return _DEFAULT_RETENTION_MS if spec.history_ms is None else spec.history_ms
    return spec.ttl_ms
