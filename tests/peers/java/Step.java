import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** One step of a description: what it says, and what the steps before it have become. */
final class Step {
    final JsonNode json;
    final String op;
    /** Types of what comes out. */
    final String keyType;

    final String valueType;
    private final Map<String, Object> built;
    private final Map<String, Step> steps;

    Step(JsonNode json, Map<String, Object> built, Map<String, Step> steps) {
        this.json = json;
        this.op = json.get("op").asText();
        this.keyType = json.path("key").asText("string");
        this.valueType = json.path("value").asText("string");
        this.built = built;
        this.steps = steps;
    }

    Named named() {
        String name = name();
        return name == null ? Named.as(json.get("id").asText()) : Named.as(name);
    }

    /** The name that the description gives, or null. */
    String name() {
        return json.path("name").asText(null);
    }

    JsonNode args() {
        return json.get("args");
    }

    String arg(String name) {
        return args().get(name).asText();
    }

    boolean has(String name) {
        return args().hasNonNull(name);
    }

    Duration duration(String name) {
        return Duration.ofMillis(args().get(name).asLong());
    }

    int parents() {
        return json.get("from").size();
    }

    Step parent(int number) {
        return steps.get(json.get("from").get(number).asText());
    }

    /** Whether a table comes out that has no store of its own and is made of a versioned one. */
    boolean inheritsVersions() {
        return switch (op) {
            case "filter", "filter_not", "map_values", "transform_values" ->
                !has("store") && (parent(0).inheritsVersions() || parent(0).keepsVersions());
            default -> false;
        };
    }

    private boolean keepsVersions() {
        return has("store") && args().get("store").hasNonNull("history_ms");
    }

    Object input(int number) {
        return built.get(json.get("from").get(number).asText());
    }

    Serde<Object> key() {
        return Types.serde(keyType);
    }

    Serde<Object> value() {
        return Types.serde(valueType);
    }

    Grouped<Object, Object> grouped() {
        return name() == null ? Grouped.with(key(), value()) : Grouped.with(name(), key(), value());
    }

    /** How the step keeps its key-value store; without one it only says the serdes. */
    Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> keyValue() {
        if (!has("store")) {
            return Materialized.with(key(), value());
        }
        JsonNode store = args().get("store");
        String name = store.get("name").asText();
        boolean persistent = store.get("persistent").asBoolean();
        if (store.hasNonNull("history_ms")) {
            Duration history = Duration.ofMillis(store.get("history_ms").asLong());
            return kept(store, Materialized.as(Stores.persistentVersionedKeyValueStore(name, history)));
        }
        return kept(
            store,
            persistent
                ? Materialized.<Object, Object, KeyValueStore<Bytes, byte[]>>as(name)
                : Materialized.as(Stores.inMemoryKeyValueStore(name)));
    }

    /** The same for the store of windows; `key` is the type that the records are grouped by. */
    Materialized<Object, Object, WindowStore<Bytes, byte[]>> windows(Serde<Object> key) {
        if (!has("store")) {
            return Materialized.with(key, value());
        }
        JsonNode store = args().get("store");
        return kept(
                store,
                Materialized.<Object, Object, WindowStore<Bytes, byte[]>>as(store.get("name").asText()))
            .withKeySerde(key);
    }

    Materialized<Object, Object, SessionStore<Bytes, byte[]>> sessions(Serde<Object> key) {
        if (!has("store")) {
            return Materialized.with(key, value());
        }
        JsonNode store = args().get("store");
        return kept(
                store,
                Materialized.<Object, Object, SessionStore<Bytes, byte[]>>as(store.get("name").asText()))
            .withKeySerde(key);
    }

    private <S extends StateStore> Materialized<Object, Object, S> kept(
        JsonNode store, Materialized<Object, Object, S> materialized) {
        if (store.hasNonNull("retention_ms")) {
            materialized.withRetention(Duration.ofMillis(store.get("retention_ms").asLong()));
        }
        materialized.withKeySerde(key()).withValueSerde(value());
        if (store.hasNonNull("history_ms")) {
            return materialized;
        }
        return store.get("caching").asBoolean()
            ? materialized.withCachingEnabled()
            : materialized.withCachingDisabled();
    }

    /** A store that a processor brings. */
    static StoreBuilder<?> builder(JsonNode store) {
        String name = store.get("name").asText();
        Serde<Object> key = Types.serde("string");
        Serde<Object> value = Types.serde(store.get("value").asText());
        boolean persistent = store.get("persistent").asBoolean();
        Duration retention = Duration.ofMillis(store.path("retention_ms").asLong());
        StoreBuilder<?> builder =
            switch (store.get("kind").asText()) {
                case "key_value" ->
                    Stores.timestampedKeyValueStoreBuilder(
                        persistent
                            ? Stores.persistentTimestampedKeyValueStore(name)
                            : Stores.inMemoryKeyValueStore(name),
                        key,
                        value);
                case "window" ->
                    Stores.windowStoreBuilder(
                        Stores.persistentWindowStore(
                            name,
                            retention,
                            Duration.ofMillis(store.get("size_ms").asLong()),
                            store.get("duplicates").asBoolean()),
                        key,
                        value);
                case "session" ->
                    Stores.sessionStoreBuilder(Stores.persistentSessionStore(name, retention), key, value);
                case "versioned" ->
                    Stores.versionedKeyValueStoreBuilder(
                        Stores.persistentVersionedKeyValueStore(
                            name, Duration.ofMillis(store.get("history_ms").asLong())),
                        key,
                        value);
                default -> throw new IllegalArgumentException("no such store: " + store);
            };
        boolean caching = store.path("caching").asBoolean() && !store.get("kind").asText().equals("versioned");
        return (caching ? builder.withCachingEnabled() : builder.withCachingDisabled())
            .withLoggingEnabled(new HashMap<>());
    }
}
