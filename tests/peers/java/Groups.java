import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;

/** Groups, their windows, and what is counted, reduced and aggregated of them. */
final class Groups {
    private Groups() {}

    static Object make(Step step) {
        return switch (step.op) {
            case "group_by_key" -> Building.stream(step, 0).groupByKey(step.grouped());
            case "windowed_by" -> windowed(step);
            case "cogroup" -> cogroup(step);
            default -> aggregated(step);
        };
    }

    private static Object windowed(Step step) {
        Duration size = step.has("size_ms") ? step.duration("size_ms") : null;
        Duration grace = step.has("grace_ms") ? step.duration("grace_ms") : Duration.ZERO;
        Object group = step.input(0);
        switch (step.arg("kind")) {
            case "tumbling":
            case "hopping":
                TimeWindows windows = TimeWindows.ofSizeAndGrace(size, grace);
                if (step.has("advance_ms")) {
                    windows = windows.advanceBy(step.duration("advance_ms"));
                }
                return group instanceof CogroupedKStream<?, ?> cogrouped
                    ? cogrouped.windowedBy(windows)
                    : stream(group).windowedBy(windows);
            case "sliding":
                SlidingWindows sliding = SlidingWindows.ofTimeDifferenceAndGrace(size, grace);
                return group instanceof CogroupedKStream<?, ?> cogrouped
                    ? cogrouped.windowedBy(sliding)
                    : stream(group).windowedBy(sliding);
            case "session":
                SessionWindows sessions = SessionWindows.ofInactivityGapAndGrace(size, grace);
                return group instanceof CogroupedKStream<?, ?> cogrouped
                    ? cogrouped.windowedBy(sessions)
                    : stream(group).windowedBy(sessions);
            case "unlimited":
                UnlimitedWindows unlimited = UnlimitedWindows.of();
                if (step.has("start_ms")) {
                    unlimited = unlimited.startOn(java.time.Instant.ofEpochMilli(step.args().get("start_ms").asLong()));
                }
                return group instanceof CogroupedKStream<?, ?> cogrouped
                    ? cogrouped.windowedBy(unlimited)
                    : stream(group).windowedBy(unlimited);
            default:
                throw new IllegalArgumentException("no such windows: " + step.arg("kind"));
        }
    }

    private static Object cogroup(Step step) {
        CogroupedKStream<Object, Object> cogrouped = null;
        for (int number = 0; number < step.parents(); number++) {
            Aggregator<Object, Object, Object> aggregator = aggregator(step.args().get("fns").get(number).asText());
            KGroupedStream<Object, Object> group = stream(step.input(number));
            cogrouped = cogrouped == null ? group.cogroup(aggregator) : cogrouped.cogroup(group, aggregator);
        }
        return cogrouped;
    }

    private static Object aggregated(Step step) {
        Object group = step.input(0);
        String function = step.args().path("fn").asText();
        Serde<Object> key = step.parent(0).key();
        EmitStrategy emit =
            step.args().path("emit").asText().equals("on_close")
                ? EmitStrategy.onWindowClose()
                : EmitStrategy.onWindowUpdate();
        if (group instanceof KGroupedTable<?, ?>) {
            return ofTable(step, function);
        }
        if (group instanceof CogroupedKStream<?, ?>
            || group instanceof TimeWindowedCogroupedKStream<?, ?>
            || group instanceof SessionWindowedCogroupedKStream<?, ?>) {
            return ofCogroup(step, function, key);
        }
        if (group instanceof TimeWindowedKStream<?, ?>) {
            TimeWindowedKStream<Object, Object> windows = cast(group);
            if (step.has("emit")) {
                windows = windows.emitStrategy(emit);
            }
            return switch (step.op) {
                case "count" -> windows.count(step.named(), cast(step.windows(key)));
                case "reduce" -> windows.reduce(reducer(function), step.named(), step.windows(key));
                default ->
                    windows.aggregate(initializer(function), aggregator(function), step.named(), step.windows(key));
            };
        }
        if (group instanceof SessionWindowedKStream<?, ?>) {
            SessionWindowedKStream<Object, Object> sessions = cast(group);
            if (step.has("emit")) {
                sessions = sessions.emitStrategy(emit);
            }
            return switch (step.op) {
                case "count" -> sessions.count(step.named(), cast(step.sessions(key)));
                case "reduce" -> sessions.reduce(reducer(function), step.named(), step.sessions(key));
                default ->
                    sessions.aggregate(
                        initializer(function),
                        aggregator(function),
                        merger(function),
                        step.named(),
                        step.sessions(key));
            };
        }
        KGroupedStream<Object, Object> records = stream(group);
        return switch (step.op) {
            case "count" -> records.count(step.named(), cast(step.keyValue()));
            case "reduce" -> records.reduce(reducer(function), step.named(), step.keyValue());
            default -> records.aggregate(initializer(function), aggregator(function), step.named(), step.keyValue());
        };
    }

    private static Object ofTable(Step step, String function) {
        KGroupedTable<Object, Object> group = cast(step.input(0));
        String subtractor = step.args().path("subtractor").asText();
        return switch (step.op) {
            case "count" -> group.count(step.named(), cast(step.keyValue()));
            case "reduce" -> group.reduce(reducer(function), reducer(subtractor), step.named(), step.keyValue());
            default ->
                group.aggregate(
                    initializer(function),
                    aggregator(function),
                    aggregator(subtractor),
                    step.named(),
                    step.keyValue());
        };
    }

    private static Object ofCogroup(Step step, String function, Serde<Object> key) {
        Object group = step.input(0);
        if (group instanceof TimeWindowedCogroupedKStream<?, ?>) {
            TimeWindowedCogroupedKStream<Object, Object> windows = cast(group);
            return windows.aggregate(initializer(function), step.named(), step.windows(key));
        }
        if (group instanceof SessionWindowedCogroupedKStream<?, ?>) {
            SessionWindowedCogroupedKStream<Object, Object> sessions = cast(group);
            return sessions.aggregate(initializer(function), merger(function), step.named(), step.sessions(key));
        }
        CogroupedKStream<Object, Object> plain = cast(group);
        return plain.aggregate(initializer(function), step.named(), step.keyValue());
    }

    private static Initializer<Object> initializer(String function) {
        return () -> Vocabulary.initial(function);
    }

    private static Aggregator<Object, Object, Object> aggregator(String function) {
        return (key, value, aggregate) -> Vocabulary.aggregate(function, key, value, aggregate);
    }

    private static Reducer<Object> reducer(String function) {
        return (old, value) -> Vocabulary.reduce(function, old, value);
    }

    private static Merger<Object, Object> merger(String function) {
        return (key, one, other) -> Vocabulary.merge(function, one, other);
    }

    private static KGroupedStream<Object, Object> stream(Object group) {
        return cast(group);
    }

    /** Whose types are the description's to keep. */
    @SuppressWarnings("unchecked")
    private static <T> T cast(Object any) {
        return (T) any;
    }
}
