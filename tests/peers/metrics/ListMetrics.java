import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Prints every metric of an application as `level group name tags`, one a line.
 *
 * <p>The application has what makes metrics: stores on disk and in memory with caches, windows,
 * sessions, a suppression, a global table, and an input that is processed. Every metric is there at
 * every level of recording; from which level on it is recorded stands in its sensor, or in its own
 * configuration if it has none. No public method tells that of a running application.
 */
public class ListMetrics {
    private static final long PATIENCE_S = 60;

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        createTopics(servers);
        runApplication(servers).forEach((name, level) -> System.out.println(level + " " + name));
    }

    private static void createTopics(String servers) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        try (Admin admin = Admin.create(properties)) {
            admin.createTopics(
                            List.of("in", "counts", "windows", "all")
                                    .stream()
                                    .map(topic -> new NewTopic(topic, 1, (short) 1))
                                    .toList())
                    .all()
                    .get(PATIENCE_S, TimeUnit.SECONDS);
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 100; n++) {
                producer.send(new ProducerRecord<>("in", 0, n * 1000L, "k" + n % 7, "v" + n));
                producer.send(new ProducerRecord<>("all", 0, n * 1000L, "k" + n % 7, "v" + n));
            }
        }
    }

    private static Map<String, String> runApplication(String servers) throws Exception {
        Path directory = Files.createTempDirectory("metrics");
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "list-metrics");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        properties.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "INFO");
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        CountDownLatch runs = new CountDownLatch(1);
        Map<String, String> found = new TreeMap<>();
        try (KafkaStreams streams = new KafkaStreams(createTopology().build(properties), properties)) {
            streams.setStateListener(
                    (now, before) -> {
                        if (now == KafkaStreams.State.RUNNING) {
                            runs.countDown();
                        }
                    });
            streams.start();
            if (!runs.await(PATIENCE_S, TimeUnit.SECONDS)) {
                throw new IllegalStateException("not running after " + PATIENCE_S + " s");
            }
            // Metrics of topics and of connections come with the first records and commits.
            for (int size = -1; size != found.size() || size == 0; Thread.sleep(2000)) {
                size = found.size();
                Map<MetricName, String> levels = readSensorLevels(streams);
                for (Metric each : streams.metrics().values()) {
                    MetricName name = each.metricName();
                    String own = ((KafkaMetric) each).config().recordLevel().name();
                    String tags = String.join(",", new TreeSet<>(name.tags().keySet()));
                    found.put(
                            name.group() + " " + name.name() + " " + tags,
                            levels.getOrDefault(name, own).toLowerCase());
                }
            }
        }
        return found;
    }

    private static Map<MetricName, String> readSensorLevels(KafkaStreams streams) throws Exception {
        Map<MetricName, String> levels = new HashMap<>();
        Map<?, ?> sensors = (Map<?, ?>) read(Metrics.class, read(KafkaStreams.class, streams, "metrics"), "sensors");
        for (Object sensor : sensors.values()) {
            String level = read(Sensor.class, sensor, "recordingLevel").toString();
            for (Object name : ((Map<?, ?>) read(Sensor.class, sensor, "metrics")).keySet()) {
                levels.put((MetricName) name, level);
            }
        }
        return levels;
    }

    private static Object read(Class<?> type, Object from, String field) throws Exception {
        Field found = type.getDeclaredField(field);
        found.setAccessible(true);
        return found.get(from);
    }

    private static StreamsBuilder createTopology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.globalTable("all", Materialized.as("everything"));
        KStream<String, String> read = builder.stream("in", Consumed.as("read"));
        read.groupByKey().count(Materialized.as("on-disk")).toStream().mapValues(String::valueOf).to("counts");
        read.groupByKey()
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("in-memory")));
        read.groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
                .count(Materialized.as("windowed"))
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
                .toStream((window, count) -> window.key())
                .mapValues(String::valueOf)
                .to("windows");
        read.groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(5)))
                .count(Materialized.as("sessions"));
        read.groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
                .count(
                        Materialized.<String, Long>as(
                                Stores.inMemoryWindowStore(
                                        "windows-in-memory",
                                        Duration.ofMinutes(1),
                                        Duration.ofSeconds(10),
                                        false)));
        read.groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(5)))
                .count(
                        Materialized.<String, Long>as(
                                Stores.inMemorySessionStore(
                                        "sessions-in-memory", Duration.ofMinutes(1))));
        return builder;
    }
}
