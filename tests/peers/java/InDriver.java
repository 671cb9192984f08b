import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/** One case in Kafka Streams' own TopologyTestDriver: one partition, a commit after each record. */
final class InDriver {
    private InDriver() {}

    static JsonNode run(JsonNode asked) throws IOException {
        Path directory = Files.createTempDirectory("peer");
        try {
            Properties properties = properties(asked.get("topology"), directory);
            CallCounter.CALLS.clear();
            if (asked.path("count_calls").asBoolean()) {
                properties.put(StreamsConfig.PROCESSOR_WRAPPER_CLASS_CONFIG, CallCounter.class);
            }
            Topology topology = Building.topology(asked.get("topology"), properties);
            ObjectNode answer = JsonNodeFactory.instance.objectNode();
            answer.put("sub_topologies", topology.describe().subtopologies().size());
            Instant start = Instant.ofEpochMilli(asked.path("wall_clock_ms").asLong());
            try (TopologyTestDriver driver = new TopologyTestDriver(topology, properties, start)) {
                pipe(asked, driver);
                answer.set("topics", topics(driver));
                answer.set("stores", StoreContents.of(asked, driver));
                answer.put("dropped", dropped(driver));
            }
            ObjectNode calls = answer.putObject("calls");
            CallCounter.CALLS.forEach(calls::put);
            return answer;
        } finally {
            remove(directory);
        }
    }

    static Properties properties(JsonNode description, Path directory) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, description.get("cache_bytes").asLong());
        properties.put(
            StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG,
            description.get("optimize").asBoolean() ? StreamsConfig.OPTIMIZE : StreamsConfig.NO_OPTIMIZATION);
        return properties;
    }

    private static void pipe(JsonNode asked, TopologyTestDriver driver) {
        Map<String, String[]> types = new HashMap<>();
        for (JsonNode step : asked.get("topology").get("steps")) {
            String[] type = {step.get("key").asText(), step.get("value").asText()};
            if (step.get("args").hasNonNull("topic")) {
                types.put(step.get("args").get("topic").asText(), type);
            }
            step.get("args").path("topics").forEach(topic -> types.put(topic.asText(), type));
        }
        Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
        for (JsonNode each : asked.get("input")) {
            if (each.has("advance_ms")) {
                driver.advanceWallClockTime(Duration.ofMillis(each.get("advance_ms").asLong()));
                continue;
            }
            String topic = each.get("topic").asText();
            String[] type = types.get(topic);
            Headers headers = new RecordHeaders();
            for (JsonNode header : each.path("headers")) {
                byte[] value = header.get(1).isNull() ? null : header.get(1).asText().getBytes(StandardCharsets.UTF_8);
                headers.add(header.get(0).asText(), value);
            }
            inputs
                .computeIfAbsent(
                    topic,
                    name -> driver.createInputTopic(name, new ByteArraySerializer(), new ByteArraySerializer()))
                .pipeInput(
                    new TestRecord<>(
                        Types.bytes(type[0], Peer.plain(each.get("key"))),
                        Types.bytes(type[1], Peer.plain(each.get("value"))),
                        headers,
                        each.get("timestamp").asLong()));
        }
    }

    private static ObjectNode topics(TopologyTestDriver driver) {
        ObjectNode topics = JsonNodeFactory.instance.objectNode();
        for (String name : new TreeSet<>(driver.producedTopicNames())) {
            if (name.startsWith("app-")) {
                continue; // internal: repartition topics and changelogs
            }
            ArrayNode records = topics.putArray(name);
            TestOutputTopic<byte[], byte[]> output =
                driver.createOutputTopic(name, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (TestRecord<byte[], byte[]> record : output.readRecordsToList()) {
                ArrayNode row = records.addArray();
                row.add(Peer.hex(record.key()));
                row.add(Peer.hex(record.value()));
                row.add(record.timestamp());
                ArrayNode headers = row.addArray();
                for (Header header : record.headers()) {
                    headers.addArray().add(header.key()).add(Peer.hex(header.value()));
                }
            }
        }
        return topics;
    }

    private static long dropped(TopologyTestDriver driver) {
        double sum = 0;
        for (var metric : driver.metrics().entrySet()) {
            MetricName name = metric.getKey();
            if (name.name().equals("dropped-records-total") && name.group().equals("stream-task-metrics")) {
                sum += (Double) metric.getValue().metricValue();
            }
        }
        return (long) sum;
    }

    static void remove(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(each);
            }
        }
    }
}
