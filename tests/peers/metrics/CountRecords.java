import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;

/**
 * Counts the records of a topic, and prints its metrics when so many were processed. The counts go to
 * a topic, and through a suppression that holds three keys.
 *
 * <p>Arguments: bootstrap servers, input, output, number of records. A line is `group name value` and
 * the tags, with a space before each.
 */
public class CountRecords {
    private static final long PATIENCE_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        long records = Long.parseLong(arguments[3]);
        Path directory = Files.createTempDirectory("metrics");
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "count-records");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        properties.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "DEBUG");
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, Long> counts = builder.<String, String>stream(arguments[1], Consumed.as("read"))
                .groupByKey()
                .count(Materialized.as("counts"));
        counts.toStream().mapValues(String::valueOf).to(arguments[2], Produced.as("write"));
        BufferConfig<?> threeKeys = BufferConfig.maxRecords(3).emitEarlyWhenFull();
        counts.suppress(Suppressed.untilTimeLimit(Duration.ofDays(1), threeKeys))
                .toStream()
                .foreach((key, count) -> {});
        try (KafkaStreams streams = new KafkaStreams(builder.build(properties), properties)) {
            streams.start();
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (sum(streams, "stream-task-metrics", "process-total") < records) {
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("not processed after " + PATIENCE_MS + " ms");
                }
                Thread.sleep(100);
            }
            Thread.sleep(1_000); // what was written is counted when it is acknowledged
            for (Metric each : streams.metrics().values()) {
                Map<String, String> tags = new TreeMap<>(each.metricName().tags());
                if (each.metricName().group().startsWith("stream-") && each.metricValue() instanceof Number) {
                    StringBuilder line = new StringBuilder();
                    line.append(each.metricName().group()).append(' ').append(each.metricName().name());
                    line.append(' ').append(((Number) each.metricValue()).doubleValue());
                    tags.forEach((tag, value) -> line.append(' ').append(tag).append('=').append(value));
                    System.out.println(line);
                }
            }
        }
    }

    private static double sum(KafkaStreams streams, String group, String name) {
        double total = 0;
        for (Metric each : streams.metrics().values()) {
            if (each.metricName().group().equals(group) && each.metricName().name().equals(name)) {
                total += ((Number) each.metricValue()).doubleValue();
            }
        }
        return total;
    }
}
