import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** The steps that are added to a topology by name, without the DSL. */
final class Added {
    private Added() {}

    /** A source, a processor with its store, a sink of what it forwards and one of what it gets. */
    static Consumer<Topology> processor(Step step) {
        String id = step.json.get("id").asText();
        Serde<Object> written = Types.serde(step.arg("writes"));
        return topology -> {
            Sources.add(topology, step, id + "-source");
            topology.addProcessor(id, supplier(step.args()), id + "-source");
            JsonNode store = step.args().path("store");
            if (store.hasNonNull("kind")) {
                topology.addStateStore(Step.builder(store), id);
            }
            topology.addSink(
                id + "-sink", step.arg("out"), step.key().serializer(), written.serializer(), id);
            topology.addSink(
                id + "-copy",
                step.arg("out") + "-copy",
                step.key().serializer(),
                step.value().serializer(),
                id + "-source");
        };
    }

    /** A global store that a processor fills. */
    static Consumer<Topology> globalStore(Step step) {
        return topology -> add(topology, step, Step.builder(step.args().get("store")));
    }

    private static <S extends StateStore> void add(Topology topology, Step step, StoreBuilder<S> store) {
        String id = step.json.get("id").asText();
        topology.addGlobalStore(
            store.withLoggingDisabled(),
            id + "-source",
            step.key().deserializer(),
            step.value().deserializer(),
            step.arg("topic"),
            id,
            () -> new Processors.Fill(step.args().get("store").get("name").asText()));
    }

    private static ProcessorSupplier<Object, Object, Object, Object> supplier(JsonNode arguments) {
        return new ProcessorSupplier<>() {
            @Override
            public Processor<Object, Object, Object, Object> get() {
                return Processors.processor(arguments);
            }
        };
    }
}
