"""Define Suppressed, which says how long `table.suppress` holds a table's updates back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from streams.common.call_hints import explain_call
from streams.common.durations import Duration, duration_to_ms
from streams.dsl.builder import InternalStreamsBuilder, require_serde
from streams.errors import TopologyError
from streams.graph.materialized import Logged, Store
from streams.graph.nodes import Node, ProcessorNode, StoreKind
from streams.operators.suppress import SuppressedView, SuppressOptions, suppress_updates
from streams.topology.expand import bind_changelog_serdes
from streams.topology.rules import SuppressionRule
from streams.windows import UnlimitedWindows

if TYPE_CHECKING:
    from streams.dsl.table import Table

WhenFull = Literal["emit_early", "shut_down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """Describes when a suppressed table's updates are emitted and what its buffer may hold.

    Made by `until_window_closes` and `until_time_limit`.
    """

    wait_ms: int | None
    """None: as long as the grace of the windows."""
    max_records: int | None
    max_bytes: int | None
    emits_early: bool
    logged: Logged
    idle_close_ms: int | None = None


@explain_call
def until_window_closes(
    *,
    max_records: int | None = None,
    max_bytes: int | None = None,
    when_full: WhenFull = "shut_down",
    logged: Logged = True,
    idle_close: Duration | None = None,
) -> Suppressed:
    """Describe a suppression that emits only the final result of each window.

    It is emitted when stream time has passed the window's end and its grace: nothing that comes
    later can change it. Windows that end up deleted are not emitted.

    The buffer has no limits unless they are given, in records or in bytes; a result that isn't
    final can't be emitted, so a full one ends the application. `logged` is as for stores. If no
    updates come for `idle_close`, time goes on by the clock (docs/suppress.md). Source:
    Suppressed.untilWindowCloses. Raises TopologyError.

    >>> app = App("pages")
    >>> visits = app.stream("visits", key=serdes.string, value=serdes.string).group_by_key()
    >>> counts = visits.windowed_by(windows.tumbling(timedelta(minutes=1))).count()
    >>> counts.suppress(until_window_closes()).to_stream().to("final")
    >>> with TopologyTestDriver(app) as driver:
    ...     for time_ms in (0, 1, 60_000):
    ...         driver.topic("visits").pipe("home", "", timestamp_ms=time_ms)
    ...     [(str(key), count) for key, count in driver.topic("final").read_pairs()]
    [('[home@0/60000]', 2)]
    """
    if when_full != "shut_down":
        raise TopologyError(
            f"until_window_closes(when_full={when_full!r}): only final results go on, so a full "
            'buffer can only "shut_down"; until_time_limit can emit early'
        )
    suppression = _create_suppressed(
        "until_window_closes", None, max_records, max_bytes, when_full, logged
    )
    if idle_close is None:
        return suppression
    idle_close_ms = _convert_duration_to_ms("until_window_closes", idle_close, "idle_close")
    if idle_close_ms == 0:
        raise TopologyError("until_window_closes: idle_close must be at least 1 ms")
    return replace(suppression, idle_close_ms=idle_close_ms)


@explain_call
def until_time_limit(
    duration: Duration,
    *,
    max_records: int | None = None,
    max_bytes: int | None = None,
    when_full: WhenFull = "emit_early",
    logged: Logged = True,
) -> Suppressed:
    """Describe a suppression that emits the last update of a key in each `duration`.

    The duration is of stream time. A full buffer emits the oldest update early, or ends the
    application ("shut_down"). `logged` is as for stores. Source: Suppressed.untilTimeLimit. Raises
    TopologyError.

    >>> app = App("shop")
    >>> prices = app.table("prices", key=serdes.string, value=serdes.int64)
    >>> prices.suppress(until_time_limit(timedelta(seconds=1))).to_stream().to("calm")
    >>> with TopologyTestDriver(app) as driver:
    ...     for time_ms, price in ((0, 3), (10, 4), (1_000, 5)):
    ...         driver.topic("prices").pipe("pen", price, timestamp_ms=time_ms)
    ...     driver.topic("calm").read_pairs()
    [('pen', 5)]
    """
    wait_ms = _convert_duration_to_ms("until_time_limit", duration, "duration")
    return _create_suppressed(
        "until_time_limit", wait_ms, max_records, max_bytes, when_full, logged
    )


def _convert_duration_to_ms(function: str, duration: Duration, argument: str) -> int:
    """Convert a duration to ms. Raises TopologyError, naming the function, if it is invalid."""
    try:
        return duration_to_ms(duration, argument)
    except ValueError as error:
        raise TopologyError(f"{function}: {error}") from None


def _create_suppressed(
    function: str,
    wait_ms: int | None,
    max_records: int | None,
    max_bytes: int | None,
    when_full: str,
    logged: Logged,
) -> Suppressed:
    """Check the limits of a suppression's buffer and return the description.

    Raises TopologyError.
    """
    for what, limit in (("max_records", max_records), ("max_bytes", max_bytes)):
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise TopologyError(f"{function}: {what}={limit!r} is no number of 0 or more")
    if when_full not in ("emit_early", "shut_down"):
        raise TopologyError(
            f'{function}: when_full={when_full!r} is neither "emit_early" nor "shut_down"'
        )
    if not isinstance(logged, bool | Mapping):
        raise TopologyError(
            f"{function}: logged={logged!r} is neither True nor False nor settings of a topic"
        )
    return Suppressed(
        wait_ms=wait_ms,
        max_records=max_records,
        max_bytes=max_bytes,
        emits_early=when_full == "emit_early",
        logged=logged,
    )


def suppress_table(table: Table[Any, Any], until: Suppressed, name: str | None) -> Table[Any, Any]:
    """Add a step that holds a table's updates back, and return the suppressed table.

    The buffer is the store `<name>-store`. Raises TopologyError naming the step.
    """
    builder: InternalStreamsBuilder = table._builder
    step = builder.graph.choose_step_name("KTABLE-SUPPRESS", name)
    if not isinstance(until, Suppressed):
        raise TopologyError(
            f"step {step!r}: suppress takes until_window_closes(...) or until_time_limit(...), "
            f"not {until!r}"
        )
    # Imported here, because it imports this module.
    from streams.dsl.table import refuse_expiring_rows

    refuse_expiring_rows(step, table, "suppressed updates")
    parent = table._view
    if parent.is_versioned:
        raise TopologyError(
            f"step {step!r}: the table is versioned, and updates of such a one can't be held back. "
            "Keep it in a store that is not versioned, or leave suppress out"
        )
    wait_ms = find_window_grace_ms(table._node, step) if until.wait_ms is None else until.wait_ms
    store = Store.persistent(
        f"{step}-STATE-STORE" if name is None else f"{step}-store", logged=until.logged
    )
    spec = replace(
        store.create_spec(
            require_serde(table._key, "key", step),
            require_serde(table._value, "value", step),
            step=step,
        ),
        kind=StoreKind.BUFFER,
        caching=False,
    )
    spec = bind_changelog_serdes(builder.application_id, spec)
    builder.graph.declare_store(spec, owner=object())
    bound = bind_changelog_serdes(builder.application_id, spec)
    # Steps behind the buffer see the old value until the new one is emitted.
    parent.enable_sending_old_values()
    waiting = SuppressOptions(
        wait_ms=wait_ms,
        until_window_ends=until.wait_ms is None,
        max_records=until.max_records,
        max_bytes=until.max_bytes,
        emits_early=until.emits_early,
        idle_close_ms=until.idle_close_ms,
    )
    node = builder.add_step(
        "KTABLE-SUPPRESS",
        table._node,
        suppress_updates(bound, waiting),
        name=step,
        stores=[spec.name],
        emits_updates=True,
        has_stream_time=True,
        rule=SuppressionRule(final_only=until.wait_ms is None and until.idle_close_ms is None),
    )
    return replace(table, _node=node, _view=SuppressedView(parent, bound))


def find_window_grace_ms(node: Node, step: str) -> int:
    """Return the longest grace, in ms, of the windows upstream of `node`.

    Raises TopologyError if there are none (GraphGraceSearchUtil), or if one never closes.
    """
    if isinstance(node, ProcessorNode) and node.grace_ms is not None:
        if node.grace_ms == UnlimitedWindows.close_delay_past_end_ms:
            raise TopologyError(
                f"step {step!r} waits until windows close, and the window of {node.name!r}, "
                "windows.unlimited(), never closes: use until_time_limit"
            )
        return node.grace_ms
    if not node.parents:
        raise TopologyError(
            f"step {step!r} waits until windows close, and what comes from {node.name!r} is in no "
            "windows: aggregate with windowed_by(...) before it, or use until_time_limit"
        )
    return max(find_window_grace_ms(parent, step) for parent in node.parents)
