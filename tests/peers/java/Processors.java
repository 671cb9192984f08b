import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** The processors that a description may name. */
final class Processors {
    private Processors() {}

    static Processor<Object, Object, Object, Object> processor(JsonNode arguments) {
        String store = arguments.path("store").path("name").asText(null);
        long interval = arguments.path("interval_ms").asLong();
        return switch (arguments.get("processor").asText()) {
            case "count" -> new Count(store);
            case "stamp" -> new Stamp();
            case "stream_ticks" -> new Ticks(interval, PunctuationType.STREAM_TIME);
            case "wall_ticks" -> new Ticks(interval, PunctuationType.WALL_CLOCK_TIME);
            case "to_child" -> new ToChild(arguments.get("children").get(0).asText(), arguments.get("children").get(1).asText());
            case "hold" -> new Hold(store, interval);
            case "recent" -> new Recent(store, arguments.get("reach_ms").asLong());
            case "versions" -> new Versions(store, arguments.get("reach_ms").asLong());
            case "sessions" -> new Sessions(store, arguments.get("reach_ms").asLong());
            case "global" -> new Global(arguments.get("global").asText());
            default -> throw new IllegalArgumentException("no such processor: " + arguments);
        };
    }

    static FixedKeyProcessor<Object, Object, Object> fixed(JsonNode arguments) {
        return switch (arguments.get("processor").asText()) {
            case "count" -> new FixedCount(arguments.get("store").get("name").asText());
            case "stamp" -> new FixedStamp();
            default -> throw new IllegalArgumentException("no such processor: " + arguments);
        };
    }

    static ValueTransformerWithKey<Object, Object, Object> transformer(JsonNode arguments) {
        return new Changes(arguments.path("with").path("name").asText(null));
    }

    static Headers stamped(Headers headers, Object key) {
        return new RecordHeaders(headers.toArray()).add("stamp", Vocabulary.text(key).getBytes(StandardCharsets.UTF_8));
    }

    /** Counts the records of a key; one without a key has -1. */
    private static final class Count extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private TimestampedKeyValueStore<Object, Object> store;

        Count(String name) {
            this.name = name;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            context().forward(record.withValue(counted(store, record.key(), record.timestamp())));
        }
    }

    static Object counted(TimestampedKeyValueStore<Object, Object> store, Object key, long timestamp) {
        if (key == null) {
            return -1L;
        }
        ValueAndTimestamp<Object> old = store.get(key);
        long count = old == null ? 1 : (Long) old.value() + 1;
        store.put(key, ValueAndTimestamp.make(count, timestamp));
        return count;
    }

    private static final class FixedCount extends ContextualFixedKeyProcessor<Object, Object, Object> {
        private final String name;

        FixedCount(String name) {
            this.name = name;
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            TimestampedKeyValueStore<Object, Object> store = context().getStateStore(name);
            context().forward(record.withValue(counted(store, record.key(), record.timestamp())));
        }
    }

    /** A later timestamp and one more header. */
    private static final class Stamp extends ContextualProcessor<Object, Object, Object, Object> {
        @Override
        public void process(Record<Object, Object> record) {
            Headers headers = stamped(record.headers(), record.key());
            context().forward(record.withTimestamp(record.timestamp() + 7).withHeaders(headers));
            context().forward(record);
        }
    }

    private static final class FixedStamp extends ContextualFixedKeyProcessor<Object, Object, Object> {
        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            Headers headers = stamped(record.headers(), record.key());
            context().forward(record.withTimestamp(record.timestamp() + 7).withHeaders(headers));
        }
    }

    /** Passes records on, and forwards the time at each tick. */
    private static final class Ticks extends ContextualProcessor<Object, Object, Object, Object> {
        private final long interval;
        private final PunctuationType type;

        Ticks(long interval, PunctuationType type) {
            this.interval = interval;
            this.type = type;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            context.schedule(
                Duration.ofMillis(interval),
                type,
                now -> context.forward(new Record<>("tick", Long.toString(now), now)));
        }

        @Override
        public void process(Record<Object, Object> record) {
            context().forward(record);
        }
    }

    /** Even values to one child, odd ones to the other, null to both. */
    private static final class ToChild extends ContextualProcessor<Object, Object, Object, Object> {
        private final String even;
        private final String odd;

        ToChild(String even, String odd) {
            this.even = even;
            this.odd = odd;
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.value() == null) {
                context().forward(record);
            } else {
                context().forward(record, Vocabulary.test("even", null, record.value()) ? even : odd);
            }
        }
    }

    /** Keeps the last value of each key and forwards them all at each tick of stream time. */
    private static final class Hold extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private final long interval;
        private TimestampedKeyValueStore<Object, Object> store;

        Hold(String name, long interval) {
            this.name = name;
            this.interval = interval;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
            context.schedule(Duration.ofMillis(interval), PunctuationType.STREAM_TIME, this::release);
        }

        private void release(long now) {
            List<Object> keys = new ArrayList<>();
            try (KeyValueIterator<Object, ValueAndTimestamp<Object>> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<Object, ValueAndTimestamp<Object>> entry = all.next();
                    keys.add(entry.key);
                    context().forward(new Record<>(entry.key, entry.value.value(), entry.value.timestamp()));
                }
            }
            keys.forEach(store::delete);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() != null) {
                store.put(record.key(), ValueAndTimestamp.make(record.value(), record.timestamp()));
            }
        }
    }

    /** What came for the key around the record's time. */
    private static final class Recent extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private final long reach;
        private WindowStore<Object, Object> store;

        Recent(String name, long reach) {
            this.name = name;
            this.reach = reach;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp();
            store.put(record.key(), record.value(), time);
            StringBuilder found = new StringBuilder();
            try (WindowStoreIterator<Object> around = store.fetch(record.key(), time - reach, time + reach)) {
                while (around.hasNext()) {
                    KeyValue<Long, Object> each = around.next();
                    found.append(each.key).append('=').append(Vocabulary.text(each.value)).append(';');
                }
            }
            context().forward(record.withValue(found.toString()));
        }
    }

    /** What the key's value was a while before the record's time. */
    private static final class Versions extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private final long reach;
        private VersionedKeyValueStore<Object, Object> store;

        Versions(String name, long reach) {
            this.name = name;
            this.reach = reach;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            store.put(record.key(), record.value(), record.timestamp());
            String before = text(store.get(record.key(), Math.max(0, record.timestamp() - reach)));
            context().forward(record.withValue(before + "/" + text(store.get(record.key()))));
        }

        private static String text(VersionedRecord<Object> found) {
            return found == null ? "null" : found.value() + "@" + found.timestamp();
        }
    }

    /** The key's sessions around the record's time become one. */
    private static final class Sessions extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private final long reach;
        private SessionStore<Object, Object> store;

        Sessions(String name, long reach) {
            this.name = name;
            this.reach = reach;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            long start = record.timestamp();
            long end = record.timestamp();
            StringBuilder all = new StringBuilder(Vocabulary.text(record.value()));
            List<org.apache.kafka.streams.kstream.Windowed<Object>> merged = new ArrayList<>();
            try (var found = store.findSessions(record.key(), Math.max(0, start - reach), start + reach)) {
                while (found.hasNext()) {
                    var each = found.next();
                    merged.add(each.key);
                    start = Math.min(start, each.key.window().start());
                    end = Math.max(end, each.key.window().end());
                    all.append('|').append(Vocabulary.text(each.value));
                }
            }
            merged.forEach(store::remove);
            var window = new org.apache.kafka.streams.kstream.internals.SessionWindow(start, end);
            store.put(new org.apache.kafka.streams.kstream.Windowed<>(record.key(), window), all.toString());
            context().forward(record.withValue(start + "-" + end + ":" + all));
        }
    }

    /** The value beside the global table's of the same key. */
    private static final class Global extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;

        Global(String name) {
            this.name = name;
        }

        @Override
        public void process(Record<Object, Object> record) {
            TimestampedKeyValueStore<Object, Object> store = context().getStateStore(name);
            ValueAndTimestamp<Object> found = record.key() == null ? null : store.get(record.key());
            String other = found == null ? "null" : Vocabulary.text(found.value());
            context().forward(record.withValue(Vocabulary.text(record.value()) + "~" + other));
        }
    }

    /** Keeps each value as text with the length of the one before, in a global store. */
    static final class Fill implements Processor<Object, Object, Void, Void> {
        private final String name;
        private TimestampedKeyValueStore<Object, Object> store;

        Fill(String name) {
            this.name = name;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            if (record.value() == null) {
                store.delete(record.key());
                return;
            }
            ValueAndTimestamp<Object> before = store.get(record.key());
            int length = before == null ? 0 : Vocabulary.text(before.value()).length();
            String value = Vocabulary.text(record.value()) + "#" + length;
            store.put(record.key(), ValueAndTimestamp.make(value, record.timestamp()));
        }
    }

    /** Key and value as text, and with a store how often the key was seen. */
    private static final class Changes implements ValueTransformerWithKey<Object, Object, Object> {
        private final String name;
        private org.apache.kafka.streams.processor.ProcessorContext context;

        Changes(String name) {
            this.name = name;
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext given) {
            context = given;
        }

        @Override
        public Object transform(Object key, Object value) {
            if (value == null) {
                return null;
            }
            String seen = "";
            if (name != null) {
                TimestampedKeyValueStore<Object, Object> store = context.getStateStore(name);
                seen = "#" + counted(store, key, context.timestamp());
            }
            return Vocabulary.text(key) + "=" + Vocabulary.text(value) + seen;
        }

        @Override
        public void close() {}
    }
}
