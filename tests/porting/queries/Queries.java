import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.apache.kafka.streams.query.StateQueryResult;
import org.apache.kafka.streams.query.TimestampedKeyQuery;
import org.apache.kafka.streams.query.VersionedKeyQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/**
 * An application with a store of each kind, which answers IQv2 queries on standard input.
 *
 * Arguments: the broker's address, the state directory and the application's id, which begins the names
 * of its inputs. A question is a line of JSON, and so is its answer: the rows of each partition in the
 * order of the store, the position, and the failures.
 */
public class Queries {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, args[2] + "-java");
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.mainConsumerPrefix("auto.offset.reset"), "earliest");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaStreams streams = new KafkaStreams(build(args[2]).build(), config)) {
            streams.start();
            for (String line = questions.readLine(); line != null; line = questions.readLine()) {
                System.out.println(JSON.writeValueAsString(answer(streams, JSON.readTree(line))));
            }
        }
    }

    private static StreamsBuilder build(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> texts = Consumed.with(TEXT, TEXT);
        KGroupedStream<String, String> clicks = builder.stream(name + "-clicks", texts).groupByKey();
        clicks.count(Materialized.as("counts"));
        clicks
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofHours(1)))
            .count(Materialized.as("windows"));
        clicks
            .windowedBy(
                SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), Duration.ofHours(1)))
            .count(Materialized.as("sessions"));
        builder.table(name + "-latest", texts, Materialized.as("latest"));
        builder.table(
            name + "-prices",
            texts,
            Materialized.as(
                Stores.persistentVersionedKeyValueStore(
                    "prices", Duration.ofMinutes(5), Duration.ofMinutes(1))));
        return builder;
    }

    private static ObjectNode answer(KafkaStreams streams, JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            PositionBound bound = PositionBound.at(readPosition(question.path("at_least")));
            send(streams, question.get("store").asText(), bound, createQuery(question), answer);
        } catch (RuntimeException error) {
            answer.put("error", error.toString());
        }
        return answer;
    }

    private static <R> void send(
        KafkaStreams streams, String store, PositionBound bound, Query<R> query, ObjectNode answer) {
        StateQueryResult<R> found =
            streams.query(StateQueryRequest.inStore(store).withQuery(query).withPositionBound(bound));
        ObjectNode partitions = answer.putObject("partitions");
        ObjectNode positions = answer.putObject("position");
        for (Map.Entry<Integer, QueryResult<R>> each : found.getPartitionResults().entrySet()) {
            QueryResult<R> result = each.getValue();
            if (result.isFailure()) {
                answer.remove("partitions");
                answer.put("error", result.getFailureReason() + ": " + result.getFailureMessage());
                return;
            }
            writeRows(result.getResult(), partitions.putArray(each.getKey().toString()));
            for (String topic : result.getPosition().getTopics()) {
                result.getPosition().getPartitionPositions(topic)
                    .forEach((partition, offset) -> positions.put(topic + "-" + partition, offset));
            }
        }
    }

    private static Query<?> createQuery(JsonNode question) {
        String key = readText(question.path("key"));
        Optional<Instant> from = readTime(question.path("from_ms"));
        Optional<Instant> to = readTime(question.path("to_ms"));
        boolean isReverse = question.path("reverse").asBoolean();
        switch (question.get("query").asText()) {
            case "KeyQuery":
                return KeyQuery.withKey(key);
            case "TimestampedKeyQuery":
                return TimestampedKeyQuery.withKey(key);
            case "RangeQuery":
                RangeQuery<String, Object> range =
                    RangeQuery.withRange(
                        readText(question.path("key_from")), readText(question.path("key_to")));
                return isReverse ? range.withDescendingKeys() : range.withAscendingKeys();
            case "WindowKeyQuery":
                return WindowKeyQuery.withKeyAndWindowStartRange(key, from.get(), to.get());
            case "WindowRangeQuery of starts":
                return WindowRangeQuery.withWindowStartRange(from.get(), to.get());
            case "WindowRangeQuery of a key":
                return WindowRangeQuery.withKey(key);
            case "VersionedKeyQuery":
                VersionedKeyQuery<String, Object> version = VersionedKeyQuery.withKey(key);
                Optional<Instant> asOf = readTime(question.path("as_of_ms"));
                return asOf.isPresent() ? version.asOf(asOf.get()) : version;
            case "MultiVersionedKeyQuery":
                MultiVersionedKeyQuery<String, Object> versions =
                    MultiVersionedKeyQuery.<String, Object>withKey(key)
                        .fromTime(from.orElse(null))
                        .toTime(to.orElse(null));
                return isReverse
                    ? versions.withDescendingTimestamps()
                    : versions.withAscendingTimestamps();
            default:
                throw new IllegalArgumentException(question.toString());
        }
    }

    private static String readText(JsonNode text) {
        return text.isTextual() ? text.textValue() : null;
    }

    private static Optional<Instant> readTime(JsonNode time) {
        return time.isIntegralNumber()
            ? Optional.of(Instant.ofEpochMilli(time.asLong()))
            : Optional.empty();
    }

    private static Position readPosition(JsonNode topics) {
        Position position = Position.emptyPosition();
        topics.properties().forEach(
            topic -> topic.getValue().properties().forEach(
                each -> position.withComponent(
                    topic.getKey(), Integer.parseInt(each.getKey()), each.getValue().asLong())));
        return position;
    }

    /** Writes rows as [key, value, timestamp, start, end], with null for what the query does not tell. */
    private static void writeRows(Object result, ArrayNode rows) {
        if (result instanceof KeyValueIterator<?, ?> found) {
            try (found) {
                while (found.hasNext()) {
                    KeyValue<?, ?> row = found.next();
                    if (row.key instanceof Windowed<?> window) {
                        writeRow(
                            rows, window.key(), row.value, window.window().start(), window.window().end());
                    } else if (row.key instanceof Long start) {
                        writeRow(rows, null, row.value, start, null);
                    } else {
                        writeRow(rows, row.key, row.value, null, null);
                    }
                }
            }
        } else if (result instanceof VersionedRecordIterator<?> found) {
            try (found) {
                while (found.hasNext()) {
                    writeVersion(rows, found.next());
                }
            }
        } else if (result instanceof VersionedRecord<?> version) {
            writeVersion(rows, version);
        } else if (result != null) {
            writeRow(rows, null, result, null, null);
        }
    }

    private static void writeVersion(ArrayNode rows, VersionedRecord<?> version) {
        rows.addArray()
            .addNull()
            .addPOJO(version.value())
            .add(version.timestamp())
            .add(version.timestamp())
            .addPOJO(version.validTo().orElse(null));
    }

    private static void writeRow(ArrayNode rows, Object key, Object value, Long start, Long end) {
        boolean hasTimestamp = value instanceof ValueAndTimestamp;
        rows.addArray()
            .addPOJO(key)
            .addPOJO(hasTimestamp ? ((ValueAndTimestamp<?>) value).value() : value)
            .addPOJO(hasTimestamp ? ((ValueAndTimestamp<?>) value).timestamp() : null)
            .addPOJO(start)
            .addPOJO(end);
    }
}
