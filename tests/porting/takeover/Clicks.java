import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Clicks of users, counted by user, by page, by minute and by visit.
 *
 * Arguments: the broker's address, the state directory and the guarantee. A signal closes it.
 */
public class Clicks {
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "clicks");
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[2]);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.mainConsumerPrefix("session.timeout.ms"), 3_000);
        config.put(StreamsConfig.mainConsumerPrefix("heartbeat.interval.ms"), 500);
        // Kafka Streams looks for closed windows once a second by default.
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        KafkaStreams streams = new KafkaStreams(topology().build(), config);
        streams.setStateListener((now, before) -> System.out.println(now));
        Runtime.getRuntime().addShutdownHook(
            new Thread(() -> streams.close(Duration.ofSeconds(60))));
        streams.start();
    }

    static StreamsBuilder topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> clicks =
            builder.stream("clicks-in", Consumed.with(Serdes.String(), Serdes.String()));
        write(clicks.groupByKey().count(Materialized.as("by-user")).toStream(), "by-user-out");
        write(
            clicks.groupBy((user, page) -> page, Grouped.with("pages", Serdes.String(), Serdes.String()))
                .count(Materialized.as("by-page"))
                .toStream(),
            "by-page-out");
        TimeWindows minutes = TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1));
        write(
            texts(clicks.groupByKey().windowedBy(minutes).count(Materialized.as("minutes"))),
            "minutes-out");
        write(
            texts(
                clicks.groupByKey()
                    .windowedBy(minutes)
                    .emitStrategy(EmitStrategy.onWindowClose())
                    .count(
                        Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("closed")
                            .withRetention(Duration.ofHours(1)))),
            "closed-out");
        write(
            texts(
                clicks.groupByKey()
                    .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(20)))
                    .count(Materialized.as("visits"))),
            "visits-out");
        return builder;
    }

    private static KStream<String, Long> texts(KTable<Windowed<String>, Long> table) {
        return table.toStream().map(
            (window, count) -> KeyValue.pair(
                window.key() + "@" + window.window().start() + "/" + window.window().end(), count));
    }

    private static void write(KStream<String, Long> stream, String topic) {
        stream.to(topic, Produced.with(Serdes.String(), Serdes.Long()));
    }
}
