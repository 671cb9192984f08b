import java.time.Duration;
import java.util.Locale;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** Builds the topologies of one input topic, as benchmarks/peers/topologies.py does. */
final class OneInput {
    private static final Set<String> NAMES =
            Set.of("map", "count", "window", "rekey", "session", "suppress");
    private static final Duration WINDOW = Duration.ofMillis(5_000);
    private static final Duration GAP = Duration.ofMillis(5_000);

    private OneInput() {}

    /** Adds a topology, or returns false if none has this name. */
    static boolean add(String topology, StreamsBuilder builder, String left, String output) {
        if (!NAMES.contains(topology)) {
            return false;
        }
        KStream<String, String> records =
                builder.stream(left, Consumed.with(Serdes.String(), Serdes.String()));
        switch (topology) {
            case "map" -> mapValues(records, output);
            case "count" -> count(records, output);
            case "window" -> writeWindows(countInWindows(records), output);
            case "rekey" -> countByNewKey(records, output);
            case "session" -> countInSessions(records, output);
            case "suppress" -> writeWindows(
                    countInWindows(records)
                            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())),
                    output);
            default -> throw new IllegalArgumentException(topology);
        }
        return true;
    }

    private static void mapValues(KStream<String, String> records, String output) {
        records.mapValues(value -> value.toUpperCase(Locale.ROOT))
                .to(output, Produced.with(Serdes.String(), Serdes.String()));
    }

    private static void count(KStream<String, String> records, String output) {
        records.groupByKey()
                .count(Materialized.as("counts"))
                .toStream()
                .to(output, Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static void countByNewKey(KStream<String, String> records, String output) {
        records.groupBy(
                        (key, value) -> "group-" + value.substring(6, 10),
                        Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"))
                .toStream()
                .to(output, Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static KTable<Windowed<String>, Long> countInWindows(KStream<String, String> records) {
        return records.groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW))
                .count(Materialized.as("counts"));
    }

    private static void writeWindows(KTable<Windowed<String>, Long> counts, String output) {
        counts.toStream()
                .to(
                        output,
                        Produced.with(
                                WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()),
                                Serdes.Long()));
    }

    private static void countInSessions(KStream<String, String> records, String output) {
        records.groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(GAP))
                .count(Materialized.as("counts"))
                .toStream()
                .to(
                        output,
                        Produced.with(
                                WindowedSerdes.sessionWindowedSerdeFrom(String.class), Serdes.Long()));
    }
}
