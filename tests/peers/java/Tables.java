import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueStore;

/** The steps of tables. */
final class Tables {
    private Tables() {}

    static Object make(Step step, Building building) {
        KTable<Object, Object> table = table(step, 0);
        String function = step.args().path("fn").asText();
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> kept = step.keyValue();
        if (step.inheritsVersions()) {
            return ofVersions(step, building, table, function);
        }
        return switch (step.op) {
            case "filter" ->
                table.filter((key, value) -> Vocabulary.test(function, key, value), step.named(), kept);
            case "filter_not" ->
                table.filterNot((key, value) -> Vocabulary.test(function, key, value), step.named(), kept);
            case "map_values" ->
                table.mapValues(value -> Vocabulary.value(function, value), step.named(), kept);
            case "transform_values" ->
                table.transformValues(
                    () -> Processors.transformer(step.args()),
                    kept,
                    step.named(),
                    building.needed(step, "with"));
            case "group_by" ->
                table.groupBy((key, value) -> Vocabulary.pair(function, key, value), step.grouped());
            case "join_tables" -> join(step, table, function, kept);
            case "join_foreign" -> foreign(step, table, function, kept);
            case "suppress" -> suppress(step, table);
            case "to_stream" -> table.toStream(step.named());
            default -> throw new IllegalArgumentException("no such step of a table: " + step.op);
        };
    }

    /**
     * With any Materialized, even one that only says serdes, Kafka Streams takes what comes out for
     * unversioned (KTableImpl.maybeSetOutputVersioned).
     */
    private static Object ofVersions(
        Step step, Building building, KTable<Object, Object> table, String function) {
        return switch (step.op) {
            case "filter" -> table.filter((key, value) -> Vocabulary.test(function, key, value), step.named());
            case "filter_not" ->
                table.filterNot((key, value) -> Vocabulary.test(function, key, value), step.named());
            case "map_values" -> table.mapValues(value -> Vocabulary.value(function, value), step.named());
            case "transform_values" ->
                table.transformValues(
                    () -> Processors.transformer(step.args()), step.named(), building.needed(step, "with"));
            default -> throw new IllegalArgumentException("no such step of a versioned table: " + step.op);
        };
    }

    private static Object join(
        Step step,
        KTable<Object, Object> table,
        String function,
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> kept) {
        KTable<Object, Object> other = table(step, 1);
        ValueJoiner<Object, Object, Object> joiner = (left, right) -> Vocabulary.join(function, left, right);
        boolean keeps = step.has("store"); // with any Materialized the results are kept
        return switch (step.arg("kind")) {
            case "inner" ->
                keeps
                    ? table.join(other, joiner, step.named(), kept)
                    : table.join(other, joiner, step.named());
            case "left" ->
                keeps
                    ? table.leftJoin(other, joiner, step.named(), kept)
                    : table.leftJoin(other, joiner, step.named());
            case "outer" ->
                keeps
                    ? table.outerJoin(other, joiner, step.named(), kept)
                    : table.outerJoin(other, joiner, step.named());
            default -> throw new IllegalArgumentException("no such join: " + step.arg("kind"));
        };
    }

    private static Object foreign(
        Step step,
        KTable<Object, Object> table,
        String function,
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> kept) {
        KTable<Object, Object> other = table(step, 1);
        ValueJoiner<Object, Object, Object> joiner = (left, right) -> Vocabulary.join(function, left, right);
        String selector = step.arg("key_fn");
        TableJoined<Object, Object> named = TableJoined.as(step.json.get("id").asText());
        Function<Object, Object> foreignKey = value -> Vocabulary.key(selector, null, value);
        if (!step.has("store")) {
            return step.arg("kind").equals("inner")
                ? table.join(other, foreignKey, joiner, named)
                : table.leftJoin(other, foreignKey, joiner, named);
        }
        return step.arg("kind").equals("inner")
            ? table.join(other, foreignKey, joiner, named, kept)
            : table.leftJoin(other, foreignKey, joiner, named, kept);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object suppress(Step step, KTable<Object, Object> table) {
        Suppressed.EagerBufferConfig eager = null;
        JsonNode args = step.args();
        if (step.has("max_records")) {
            eager = Suppressed.BufferConfig.maxRecords(args.get("max_records").asLong());
        }
        if (step.has("max_bytes")) {
            long limit = args.get("max_bytes").asLong();
            eager = eager == null ? Suppressed.BufferConfig.maxBytes(limit) : eager.withMaxBytes(limit);
        }
        if (step.arg("until").equals("window_closes")) {
            Suppressed.StrictBufferConfig strict =
                eager == null ? Suppressed.BufferConfig.unbounded() : eager.shutDownWhenFull();
            Suppressed<Windowed<?>> suppressed = Suppressed.untilWindowCloses(strict);
            return table.suppress((Suppressed) (step.name() == null ? suppressed : suppressed.withName(step.name())));
        }
        Suppressed.BufferConfig<?> config = eager == null ? Suppressed.BufferConfig.unbounded() : eager;
        Suppressed<Object> suppressed = Suppressed.untilTimeLimit(step.duration("wait_ms"), config);
        return table.suppress(step.name() == null ? suppressed : suppressed.withName(step.name()));
    }

    @SuppressWarnings("unchecked")
    static KTable<Object, Object> table(Step step, int number) {
        return (KTable<Object, Object>) step.input(number);
    }
}
