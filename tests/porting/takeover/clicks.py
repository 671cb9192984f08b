"""Count clicks of users by user, by page, by minute and by visit, as `Clicks.java` does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millrace import App, Store, serdes, windows

app = App("clicks")


def kept(name: str) -> Store:
    """Return a store without a cache, as Kafka Streams has it there."""
    return Store.persistent(name, caching=False)


def write(stream: Any, topic: str) -> None:
    stream.to(topic, key=serdes.string, value=serdes.int64)


def texts(table: Any) -> Any:
    return table.to_stream().map(
        lambda window, count: (f"{window.key}@{window.start_ms}/{window.end_ms}", count)
    )


clicks = app.stream("clicks-in", key=serdes.string, value=serdes.string)
write(clicks.group_by_key().count(store=kept("by-user")).to_stream(), "by-user-out")
write(
    clicks.group_by(lambda user, page: page, key=serdes.string, name="pages")
    .count(store=kept("by-page"))
    .to_stream(),
    "by-page-out",
)
closed = Store.persistent("closed", caching=False, retention=timedelta(hours=1))
minutes = windows.tumbling(timedelta(minutes=1))
write(texts(clicks.group_by_key().windowed_by(minutes).count(store=kept("minutes"))), "minutes-out")
write(
    texts(clicks.group_by_key().windowed_by(minutes).count(store=closed, emit="on_close")),
    "closed-out",
)
write(
    texts(
        clicks.group_by_key()
        .windowed_by(windows.session(timedelta(seconds=20)))
        .count(store=kept("visits"))
    ),
    "visits-out",
)
