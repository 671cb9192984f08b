"""Remove duplicates: forward each event of a topic once, however often it was sent.

    millrace run examples.dedupe:app --workers 2

It reads the topic `events` and writes `events-once`, both of which must exist. An event is known by
its key, for an hour of event time.
"""

from datetime import timedelta
from typing import Any

from millrace import App, Processor, ProcessorContext, Record, Store, serdes

REMEMBERED_MS = 3_600_000


class Dedupe(Processor[str, bytes, str, bytes]):
    """Forwards events that it has not seen within `REMEMBERED_MS`, and forgets older events."""

    stores = [Store.persistent("seen", key=serdes.string, value=serdes.int64)]

    def init(self, context: ProcessorContext[str, bytes]) -> None:
        """Get the store, and schedule the removal of old entries once a minute of event time."""
        self.seen: Any = context.store("seen")
        context.schedule(timedelta(minutes=1), self.forget)

    def process(self, record: Record[str, bytes]) -> None:
        """Forward an event and remember its time, unless it was seen within `REMEMBERED_MS`."""
        seen_ms = self.seen.get(record.key)
        if seen_ms is None or record.timestamp_ms - seen_ms > REMEMBERED_MS:
            self.seen.put(record.key, record.timestamp_ms)
            self.context.forward(record)

    def forget(self, now_ms: int) -> None:
        """Delete the remembered events that were seen more than `REMEMBERED_MS` ago."""
        for key, seen_ms in self.seen.all():
            if now_ms - seen_ms > REMEMBERED_MS:
                self.seen.delete(key)


app = App("dedupe")
app.stream("events", key=serdes.string, value=serdes.bytes).process_values(Dedupe).to("events-once")

if __name__ == "__main__":
    app.run()
