import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.state.KeyValueStore;

/** Builds the topologies of two input topics, as benchmarks/peers/topologies.py does. */
final class Joins {
    private static final Duration WITHIN = Duration.ofMillis(50);

    private Joins() {}

    /** Adds a topology, or returns false if none has this name. */
    static boolean add(
            String topology, StreamsBuilder builder, String left, String right, String output) {
        KStream<String, String> joined;
        switch (topology) {
            case "stream-table" -> joined =
                    readStream(builder, left)
                            .leftJoin(readTable(builder, right, "rights"), Joins::joinValues);
            case "stream-stream" -> joined =
                    readStream(builder, left)
                            .join(
                                    readStream(builder, right),
                                    Joins::joinValues,
                                    JoinWindows.ofTimeDifferenceWithNoGrace(WITHIN),
                                    StreamJoined.with(
                                            Serdes.String(), Serdes.String(), Serdes.String()));
            case "table-table" -> joined =
                    readTable(builder, left, "lefts")
                            .join(readTable(builder, right, "rights"), Joins::joinValues)
                            .toStream();
            case "foreign-key" -> joined =
                    readTable(builder, left, "lefts")
                            .join(
                                    readTable(builder, right, "rights"),
                                    value -> "key-0000" + value.substring(17, 20),
                                    Joins::joinValues)
                            .toStream();
            default -> {
                return false;
            }
        }
        joined.to(output, Produced.with(Serdes.String(), Serdes.String()));
        return true;
    }

    private static KStream<String, String> readStream(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Consumed.with(Serdes.String(), Serdes.String()));
    }

    private static KTable<String, String> readTable(
            StreamsBuilder builder, String topic, String store) {
        return builder.table(
                topic,
                Consumed.with(Serdes.String(), Serdes.String()),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store));
    }

    private static String joinValues(String left, String right) {
        return left.substring(0, 10) + "|" + (right == null ? "none" : right.substring(0, 10));
    }
}
