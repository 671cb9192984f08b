import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** A topology of Kafka Streams from its description; here sources and the steps of streams. */
final class Building {
    private final StreamsBuilder builder;
    private final Map<String, Object> built = new LinkedHashMap<>();
    private final Map<String, Step> steps = new HashMap<>();
    private final Map<String, StoreBuilder<?>> stores = new HashMap<>();
    /** What is added to the topology without the DSL, when that is done. */
    private final List<Consumer<Topology>> added = new ArrayList<>();

    static Topology topology(JsonNode description, Properties properties) {
        Building building = new Building(properties);
        for (JsonNode each : description.get("steps")) {
            Step step = new Step(each, building.built, building.steps);
            building.steps.put(each.get("id").asText(), step);
            Object made = building.make(step);
            if (made != null) {
                building.built.put(each.get("id").asText(), made);
            }
        }
        Topology topology = building.builder.build(properties);
        building.added.forEach(add -> add.accept(topology));
        return topology;
    }

    private Building(Properties properties) {
        // Without this, process() counts as a step that changes neither key nor value, and a
        // repartition topic moves to before it (KAFKA-19668; docs/decisions/0033).
        properties.put(TopologyConfig.InternalConfig.ENABLE_PROCESS_PROCESSVALUE_FIX, true);
        builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(properties)));
    }

    private Object make(Step step) {
        return switch (step.op) {
            case "stream" ->
                step.has("pattern")
                    ? builder.stream(Pattern.compile(step.arg("pattern")), Sources.consumed(step))
                    : builder.stream(step.arg("topic"), Sources.consumed(step));
            case "table" ->
                builder.table(
                    step.arg("topic"), Consumed.with(step.key(), step.value()), step.keyValue());
            case "global_table" ->
                builder.globalTable(
                    step.arg("topic"), Consumed.with(step.key(), step.value()), step.keyValue());
            case "filter", "filter_not", "map_values", "transform_values", "group_by" ->
                step.input(0) instanceof KTable<?, ?> ? Tables.make(step, this) : ofStream(step);
            case "group_by_key", "windowed_by", "cogroup", "count", "reduce", "aggregate" ->
                Groups.make(step);
            case "join_tables", "join_foreign", "suppress", "to_stream" -> Tables.make(step, this);
            case "join_stream", "join_table", "join_global" -> join(step);
            case "branch" -> branch(step);
            case "builder", "global_store" -> {
                added.add(step.op.equals("builder") ? Added.processor(step) : Added.globalStore(step));
                yield null;
            }
            default -> ofStream(step);
        };
    }

    private Object ofStream(Step step) {
        KStream<Object, Object> stream = stream(step, 0);
        String function = step.args().path("fn").asText();
        return switch (step.op) {
            case "filter" -> stream.filter((key, value) -> Vocabulary.test(function, key, value), step.named());
            case "filter_not" ->
                stream.filterNot((key, value) -> Vocabulary.test(function, key, value), step.named());
            case "map" -> stream.map((key, value) -> Vocabulary.pair(function, key, value), step.named());
            case "map_values" -> stream.mapValues(value -> Vocabulary.value(function, value), step.named());
            case "flat_map" -> stream.flatMap((key, value) -> Vocabulary.pairs(function, key, value), step.named());
            case "flat_map_values" ->
                stream.flatMapValues(value -> Vocabulary.values(function, value), step.named());
            case "select_key" ->
                stream.selectKey((key, value) -> Vocabulary.key(function, key, value), step.named());
            case "group_by" ->
                stream.groupBy((key, value) -> Vocabulary.key(function, key, value), step.grouped());
            case "peek" -> stream.peek((key, value) -> {}, step.named());
            case "merge" -> stream.merge(stream(step, 1), step.named());
            case "split" -> split(step, stream);
            case "repartition" -> stream.repartition(repartitioned(step));
            case "to_table" -> stream.toTable(step.named(), step.keyValue());
            case "to" -> {
                stream.to(step.arg("topic"), Sources.produced(step));
                yield null;
            }
            case "to_dynamic" -> {
                stream.to(
                    (key, value, context) -> Vocabulary.topic(function, key, value),
                    Produced.with(step.key(), step.value()));
                yield null;
            }
            case "process" -> {
                String[] needed = needed(step, "store");
                ProcessorSupplier<Object, Object, Object, Object> supplier = new ProcessorSupplier<>() {
                    @Override
                    public Processor<Object, Object, Object, Object> get() {
                        return Processors.processor(step.args());
                    }
                };
                yield stream.process(supplier, step.named(), needed);
            }
            case "process_values" -> {
                String[] needed = needed(step, "store");
                FixedKeyProcessorSupplier<Object, Object, Object> supplier = new FixedKeyProcessorSupplier<>() {
                    @Override
                    public FixedKeyProcessor<Object, Object, Object> get() {
                        return Processors.fixed(step.args());
                    }
                };
                yield stream.processValues(supplier, step.named(), needed);
            }
            default -> throw new IllegalArgumentException("no such step: " + step.op);
        };
    }

    /** The store that the step's argument brings, added to the topology; none is no store. */
    String[] needed(Step step, String argument) {
        JsonNode store = step.args().path(argument);
        if (!store.hasNonNull("kind")) {
            return new String[0];
        }
        String name = store.get("name").asText();
        if (!stores.containsKey(name)) {
            stores.put(name, Step.builder(store));
            builder.addStateStore(stores.get(name));
        }
        return new String[] {name};
    }

    private static Repartitioned<Object, Object> repartitioned(Step step) {
        Repartitioned<Object, Object> repartitioned = Repartitioned.with(step.key(), step.value());
        if (step.name() != null) {
            repartitioned = repartitioned.withName(step.name());
        }
        return step.has("partitions")
            ? repartitioned.withNumberOfPartitions(step.args().get("partitions").asInt())
            : repartitioned;
    }

    private Object split(Step step, KStream<Object, Object> stream) {
        BranchedKStream<Object, Object> branched = stream.split(org.apache.kafka.streams.kstream.Named.as(step.json.get("id").asText() + "-"));
        for (JsonNode each : step.args().get("branches")) {
            String predicate = each.get(1).asText();
            branched =
                branched.branch(
                    (key, value) -> Vocabulary.test(predicate, key, value),
                    Branched.as(each.get(0).asText()));
        }
        return step.has("default")
            ? branched.defaultBranch(Branched.as(step.arg("default")))
            : branched.noDefaultBranch();
    }

    private Object branch(Step step) {
        Map<?, ?> branches = (Map<?, ?>) step.input(0);
        return branches.get(step.json.get("from").get(0).asText() + "-" + step.arg("branch"));
    }

    private Object join(Step step) {
        KStream<Object, Object> stream = stream(step, 0);
        String function = step.arg("fn");
        String kind = step.arg("kind");
        ValueJoiner<Object, Object, Object> joiner = (left, right) -> Vocabulary.join(function, left, right);
        if (step.op.equals("join_global")) {
            @SuppressWarnings("unchecked")
            GlobalKTable<Object, Object> table = (GlobalKTable<Object, Object>) step.input(1);
            String selector = step.arg("key_fn");
            return kind.equals("inner")
                ? stream.join(table, (key, value) -> (Object) Vocabulary.key(selector, key, value), joiner)
                : stream.leftJoin(table, (key, value) -> (Object) Vocabulary.key(selector, key, value), joiner);
        }
        Step left = step.parent(0);
        Step right = step.parent(1);
        if (step.op.equals("join_table")) {
            Joined<Object, Object, Object> joined = Joined.with(left.key(), left.value(), right.value());
            if (step.name() != null) {
                joined = joined.withName(step.name());
            }
            if (step.has("grace_ms")) {
                joined = joined.withGracePeriod(step.duration("grace_ms"));
            }
            KTable<Object, Object> table = Tables.table(step, 1);
            return kind.equals("inner")
                ? stream.join(table, joiner, joined)
                : stream.leftJoin(table, joiner, joined);
        }
        JoinWindows windows =
            JoinWindows.ofTimeDifferenceAndGrace(step.duration("before_ms"), step.duration("grace_ms"))
                .before(step.duration("before_ms"))
                .after(step.duration("after_ms"));
        StreamJoined<Object, Object, Object> joined = StreamJoined.with(left.key(), left.value(), right.value());
        if (step.name() != null) {
            joined = joined.withName(step.name()).withStoreName(step.name());
        }
        KStream<Object, Object> other = stream(step, 1);
        return switch (kind) {
            case "inner" -> stream.join(other, joiner, windows, joined);
            case "left" -> stream.leftJoin(other, joiner, windows, joined);
            case "outer" -> stream.outerJoin(other, joiner, windows, joined);
            default -> throw new IllegalArgumentException("no such join: " + kind);
        };
    }

    @SuppressWarnings("unchecked")
    static KStream<Object, Object> stream(Step step, int number) {
        return (KStream<Object, Object>) step.input(number);
    }
}
