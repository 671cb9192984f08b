import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.TreeSet;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Window;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/** What the stores that a description names hold at the end, in their order. */
final class StoreContents {
    private StoreContents() {}

    static ObjectNode of(JsonNode asked, TopologyTestDriver driver) {
        ObjectNode stores = JsonNodeFactory.instance.objectNode();
        for (JsonNode step : asked.get("topology").get("steps")) {
            for (String argument : new String[] {"store", "with"}) {
                JsonNode store = step.get("args").path(argument);
                if (store.hasNonNull("name")) {
                    String name = store.get("name").asText();
                    String type = store.path("value").asText(step.path("value").asText());
                    stores.set(name, rows(driver.getAllStateStores().get(name), asked, type));
                }
            }
        }
        return stores;
    }

    @SuppressWarnings("unchecked")
    private static ArrayNode rows(StateStore store, JsonNode asked, String type) {
        ArrayNode rows = JsonNodeFactory.instance.arrayNode();
        if (store == null) {
            return rows.add("there is no such store");
        }
        if (store instanceof VersionedKeyValueStore<?, ?>) {
            versions((VersionedKeyValueStore<Object, Object>) store, asked, rows);
        } else if (store instanceof SessionStore<?, ?>) {
            var sessions = (SessionStore<Bytes, byte[]>) behindTheCache(store);
            try (var all = sessions.fetch(null, null)) {
                all.forEachRemaining(each -> windowed(rows.addArray(), each, type, false));
            }
        } else if (store instanceof WindowStore<?, ?>) {
            boolean stamped = store instanceof TimestampedWindowStore<?, ?>;
            var windows = (WindowStore<Bytes, byte[]>) behindTheCache(store);
            try (var all = windows.all()) {
                all.forEachRemaining(each -> windowed(rows.addArray(), each, type, stamped));
            }
        } else {
            try (KeyValueIterator<Object, Object> all = ((KeyValueStore<Object, Object>) store).all()) {
                while (all.hasNext()) {
                    KeyValue<Object, Object> each = all.next();
                    ArrayNode row = rows.addArray();
                    Peer.add(row, each.key);
                    value(row, each.value);
                }
            }
        }
        return rows;
    }

    /** A cache still shows what has expired in the store. */
    private static StateStore behindTheCache(StateStore store) {
        StateStore inner = ((WrappedStateStore<?, ?, ?>) store).wrapped();
        while (inner.getClass().getSimpleName().startsWith("Caching")) {
            inner = ((WrappedStateStore<?, ?, ?>) inner).wrapped();
        }
        return inner;
    }

    private static void windowed(
        ArrayNode row, KeyValue<Windowed<Bytes>, byte[]> each, String type, boolean stamped) {
        Window window = each.key.window();
        row.add(new String(each.key.key().get(), StandardCharsets.UTF_8));
        row.add(window.start());
        row.add(window.end());
        ByteBuffer value = ByteBuffer.wrap(each.value);
        long timestamp = stamped ? value.getLong() : 0;
        byte[] rest = new byte[value.remaining()];
        value.get(rest);
        Peer.add(row, Types.serde(type).deserializer().deserialize("", rest));
        if (stamped) {
            row.add(timestamp);
        }
    }

    private static void value(ArrayNode row, Object value) {
        if (value instanceof ValueAndTimestamp<?> stamped) {
            Peer.add(row, stamped.value());
            row.add(stamped.timestamp());
        } else {
            Peer.add(row, value);
        }
    }

    /** Every key of the input, as of every time of the input. */
    private static void versions(VersionedKeyValueStore<Object, Object> store, JsonNode asked, ArrayNode rows) {
        TreeSet<String> keys = new TreeSet<>();
        TreeSet<Long> times = new TreeSet<>();
        for (JsonNode each : asked.get("input")) {
            if (each.hasNonNull("key")) {
                keys.add(each.get("key").asText());
            }
            if (each.has("timestamp")) {
                times.add(each.get("timestamp").asLong());
            }
        }
        for (String key : keys) {
            for (Long time : times) {
                VersionedRecord<Object> found = store.get(key, time);
                if (found != null) {
                    ArrayNode row = rows.addArray();
                    row.add(key);
                    row.add(time);
                    Peer.add(row, found.value());
                    row.add(found.timestamp());
                }
            }
        }
    }
}
