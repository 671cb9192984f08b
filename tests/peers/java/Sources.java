import java.time.Duration;
import java.util.regex.Pattern;
import org.apache.kafka.streams.AutoOffsetReset;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** How a source finds the times of records and where it begins, and how a sink chooses partitions. */
final class Sources {
    private Sources() {}

    static Consumed<Object, Object> consumed(Step step) {
        Consumed<Object, Object> consumed = Consumed.with(step.key(), step.value());
        if (step.has("extractor")) {
            consumed = consumed.withTimestampExtractor(extractor(step));
        }
        return step.has("reset") ? consumed.withOffsetResetPolicy(reset(step)) : consumed;
    }

    /** Adds a source by name, without the DSL. */
    static void add(Topology topology, Step step, String name) {
        AutoOffsetReset reset = step.has("reset") ? reset(step) : null;
        TimestampExtractor extractor = step.has("extractor") ? extractor(step) : null;
        if (step.has("pattern")) {
            Pattern pattern = Pattern.compile(step.arg("pattern"));
            topology.addSource(
                reset, name, extractor, step.key().deserializer(), step.value().deserializer(), pattern);
        } else {
            topology.addSource(
                reset, name, extractor, step.key().deserializer(), step.value().deserializer(), step.arg("topic"));
        }
    }

    static Produced<Object, Object> produced(Step step) {
        Produced<Object, Object> produced = Produced.with(step.key(), step.value());
        return step.has("partitioner") ? produced.withStreamPartitioner(partitioner(step)) : produced;
    }

    private static TimestampExtractor extractor(Step step) {
        String function = step.arg("extractor");
        return (record, partitionTime) ->
            Vocabulary.time(function, record.value(), record.timestamp(), partitionTime);
    }

    private static AutoOffsetReset reset(Step step) {
        return switch (step.arg("reset")) {
            case "earliest" -> AutoOffsetReset.earliest();
            case "latest" -> AutoOffsetReset.latest();
            case "by_duration" -> AutoOffsetReset.byDuration(Duration.ofHours(1));
            default -> throw new IllegalArgumentException("no such policy: " + step.arg("reset"));
        };
    }

    @SuppressWarnings("removal") // It is the one method of the interface that has no default.
    private static StreamPartitioner<Object, Object> partitioner(Step step) {
        String function = step.arg("partitioner");
        return (topic, key, value, count) -> Vocabulary.partitions(function, value);
    }
}
