"""Define how a store is kept: `store="name"`, or one of `Store`'s constructors.

Kafka Streams' Materialized and Stores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from state.guessed_names import explain_guessed_names
from streams.common.call_hints import explain_calls
from streams.common.durations import Duration, duration_to_ms
from streams.common.names import explain_illegal_name
from streams.errors import TopologyError
from streams.graph.guessed_store_names import NAMES_OF_STORES
from streams.graph.nodes import StoreKind, StoreSpec
from streams.serdes import Serde

Logged = bool | Mapping[str, Any]
"""True, False, or settings of the changelog topic."""
_UNNAMED = "unnamed"
"""Stands for the name of a store that is named after its step, in messages."""


@explain_guessed_names(NAMES_OF_STORES)
@explain_calls
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Store:
    """Describes a state store: its name, kind, serdes and how it is kept.

    Made by `persistent`, `in_memory`, `window`, `session` and `versioned`; durations are
    milliseconds or `timedelta`; all raise TopologyError for invalid arguments.

    All of them take: `key` and `value`, the serdes, needed where no step of the DSL knows them
    (stores of processors); `logged`, False for a store without a changelog, which a crash loses, or
    settings of the changelog topic; `rocksdb`, which is handed rocksdict's `Options` to change.
    """

    name: str
    kind: StoreKind = StoreKind.KEY_VALUE
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    caching: bool = True
    spec_fields: Mapping[str, Any] = field(default_factory=dict)
    """The other fields of the StoreSpec, by name."""

    @classmethod
    def default(
        cls,
        name: str | None = None,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        retention: Duration | None = None,
        logged: Logged = True,
        caching: bool = True,
    ) -> Store:
        """Describe a store of a step of the DSL, on disk or in memory by `default_store` (KIP-591).

        Without a `name` it is named after its step. The arguments are those of `persistent`. Kafka
        Streams' Materialized without a supplier.

        >>> app = App("shop", default_store="in_memory")
        >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64).group_by_key()
        >>> table = orders.count(store=Store.default(caching=False, logged=False))
        """
        store = _create_store(
            _UNNAMED if name is None else name,
            key,
            value,
            logged,
            caching=caching,
            retention=retention,
            persistent=True,
        )
        fields = {**store.spec_fields, "has_default_medium": True}
        return replace(store, name=name or "", spec_fields=fields)

    @classmethod
    def persistent(
        cls,
        name: str,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        retention: Duration | None = None,
        ttl: Duration | None = None,
        logged: Logged = True,
        caching: bool = True,
        rocksdb: Callable[[Any], object] | None = None,
    ) -> Store:
        """Describe a store of keys and values on RocksDB.

        Kafka Streams' Stores.persistentKeyValueStore; `ttl` has no counterpart there.

        With `caching` the result of an aggregation goes downstream once a commit. `ttl`: entries
        are gone so long after the timestamp of their last write, and nobody is told: a table of
        such rows can be looked up, and not be grouped or joined with another table. `retention` is
        for the windowed operators, which keep their windows in this store.

        >>> app = App("shop")
        >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64).group_by_key()
        >>> table = orders.count(store=Store.persistent("counts", caching=False))
        """
        return _create_store(
            name,
            key,
            value,
            logged,
            caching=caching,
            retention=retention,
            ttl=ttl,
            persistent=True,
            rocksdb=rocksdb,
        )

    @classmethod
    def in_memory(
        cls,
        name: str,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        retention: Duration | None = None,
        ttl: Duration | None = None,
        logged: Logged = True,
        caching: bool = True,
    ) -> Store:
        """Describe a store of keys and values in memory, restored from its changelog at each start.

        The arguments are those of `persistent`. Kafka Streams' Stores.inMemoryKeyValueStore.

        >>> store = Store.in_memory("rates", key=serdes.string, value=serdes.float64)
        >>> rates = App("shop").table("rates", store=store)
        """
        return _create_store(
            name,
            key,
            value,
            logged,
            caching=caching,
            retention=retention,
            ttl=ttl,
            persistent=False,
        )

    @classmethod
    def versioned(
        cls,
        name: str,
        *,
        history: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        persistent: bool = True,
        logged: Logged = True,
        rocksdb: Callable[[Any], object] | None = None,
    ) -> Store:
        """Describe a store of each key's values over time, up to `history` behind stream time.

        A value can be looked up as of any time in the history (KIP-889). Kafka Streams'
        Stores.persistentVersionedKeyValueStore.

        >>> store = Store.versioned("prices", history=timedelta(days=7))
        >>> prices = App("shop").table("prices", key=serdes.string, value=serdes.int64, store=store)
        """
        return _create_store(
            name,
            key,
            value,
            logged,
            kind=StoreKind.VERSIONED,
            caching=False,
            history=history,
            persistent=persistent,
            rocksdb=rocksdb,
        )

    @classmethod
    def window(
        cls,
        name: str,
        *,
        size: Duration,
        retention: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        persistent: bool = True,
        retain_duplicates: bool = False,
        logged: Logged = True,
        caching: bool = True,
        rocksdb: Callable[[Any], object] | None = None,
    ) -> Store:
        """Describe a store of values by key and window start.

        A value expires `retention` behind stream time, which is at least `size`. With
        `retain_duplicates` a window holds every value that was put. Kafka Streams'
        Stores.persistentWindowStore.

        >>> key, value = serdes.string, serdes.int64
        >>> hour = timedelta(hours=1)
        >>> store = Store.window("seen", size=hour, retention=hour, key=key, value=value)
        >>> App("shop").add_store(store)
        """
        return _create_store(
            name,
            key,
            value,
            logged,
            kind=StoreKind.WINDOW,
            caching=caching,
            size=size,
            retention=retention,
            retain_duplicates=retain_duplicates,
            persistent=persistent,
            rocksdb=rocksdb,
        )

    @classmethod
    def session(
        cls,
        name: str,
        *,
        retention: Duration,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        persistent: bool = True,
        logged: Logged = True,
        caching: bool = True,
        rocksdb: Callable[[Any], object] | None = None,
    ) -> Store:
        """Describe a store of values by key and session, from a first to a last timestamp.

        A value expires `retention` behind stream time. Kafka Streams'
        Stores.persistentSessionStore.

        >>> store = Store.session(
        ...     "visits", retention=timedelta(days=1), key=serdes.string, value=serdes.int64
        ... )
        >>> App("shop").add_store(store)
        """
        return _create_store(
            name,
            key,
            value,
            logged,
            kind=StoreKind.SESSION,
            caching=caching,
            retention=retention,
            persistent=persistent,
            rocksdb=rocksdb,
        )

    def create_spec(
        self,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        *,
        kinds: Collection[StoreKind] = tuple(StoreKind),
        step: str,
        is_windowed: bool = False,
    ) -> StoreSpec:
        """Return the store's spec as `step` uses it, with its own serdes or else those given.

        The store must be of one of `kinds`. A step with `is_windowed` keeps windows in what is
        declared as a store of keys and values. Raises TopologyError.
        """
        if not self.name:
            raise TopologyError(f"step {step!r}: this store needs a name: Store.default('name')")
        if self.kind not in kinds:
            wanted = " or ".join(kinds)
            raise TopologyError(
                f"step {step!r} needs a {wanted} store, and {self.name!r} is a {self.kind} store"
            )
        if is_windowed and self.spec_fields["ttl_ms"] is not None:
            raise TopologyError(
                f"store {self.name!r} of step {step!r} keeps windows, which go by retention=, not "
                "by ttl="
            )
        if (
            self.kind is StoreKind.KEY_VALUE
            and self.spec_fields["retention_ms"] is not None
            and not is_windowed
        ):
            raise TopologyError(
                f"store {self.name!r} of step {step!r} has no windows that retention= could be "
                "about: for entries that go after a time use ttl="
            )
        key, value = self.key or key, self.value or value
        for what, serde in (("key", key), ("value", value)):
            if serde is not None and not isinstance(serde, Serde):
                raise TopologyError(f"store {self.name!r}: {what}={serde!r} is not a serde")
        if key is None or value is None:
            what = "key" if key is None else "value"
            raise TopologyError(
                f"store {self.name!r} of step {step!r} needs a {what} serde: "
                f"Store.…({self.name!r}, {what}=serdes.…)"
            )
        return StoreSpec(
            name=self.name,
            kind=self.kind,
            key=key,
            value=value,
            caching=self.caching,
            **self.spec_fields,
        )


def _create_store(
    name: str,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    logged: Logged,
    *,
    persistent: bool,
    caching: bool,
    kind: StoreKind = StoreKind.KEY_VALUE,
    size: Duration | None = None,
    retention: Duration | None = None,
    history: Duration | None = None,
    ttl: Duration | None = None,
    retain_duplicates: bool = False,
    rocksdb: Callable[[Any], object] | None = None,
) -> Store:
    """Check the arguments of a constructor and return the Store. Raises TopologyError."""
    if (fault := explain_illegal_name(name)) is not None:
        raise TopologyError(
            f"store {name!r}: its changelog is named after it, and {fault}: give it another name"
        )

    def store_error(why: str) -> TopologyError:
        return TopologyError(f"store {name!r}: {why}")

    for what, serde in (("key", key), ("value", value)):
        if serde is not None and not isinstance(serde, Serde):
            raise store_error(f"{what}={serde!r} is not a serde")
    if not isinstance(logged, bool | Mapping):
        raise store_error(f"logged={logged!r} is neither True nor False nor settings of a topic")
    if rocksdb is not None and not callable(rocksdb):
        raise store_error(f"rocksdb={rocksdb!r} is not a function of RocksDB's options")
    if rocksdb is not None and not persistent:
        raise store_error("rocksdb= is for persistent stores")
    given = {"size": size, "retention": retention, "history": history, "ttl": ttl}
    try:
        ms = {what: None if d is None else duration_to_ms(d, what) for what, d in given.items()}
    except ValueError as error:
        raise store_error(str(error)) from None
    for what in ("size", "ttl"):
        if ms[what] == 0:
            raise store_error(f"{what} must be at least 1 ms")
    if kind is StoreKind.WINDOW and (ms["retention"] or 0) < (ms["size"] or 0):
        raise store_error(f"retention ({ms['retention']} ms) is less than size ({ms['size']} ms)")
    settings = logged if isinstance(logged, Mapping) else {}
    kept = {
        "persistent": persistent,
        "logged": logged is not False,
        "topic_settings": {str(each): _format_topic_setting(settings[each]) for each in settings},
        "retention_ms": ms["retention"],
        "window_size_ms": ms["size"],
        "retain_duplicates": retain_duplicates,
        "history_ms": ms["history"],
        "ttl_ms": ms["ttl"],
        "rocksdb": rocksdb,
    }
    return Store(name=name, kind=kind, key=key, value=value, caching=caching, spec_fields=kept)


def _format_topic_setting(setting: object) -> str:
    """Return a topic setting as Kafka writes it."""
    return str(setting).lower() if isinstance(setting, bool) else str(setting)
