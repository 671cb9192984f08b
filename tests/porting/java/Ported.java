import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Applications of Kafka Streams that tests port; each runs in TopologyTestDriver.
 *
 * Argument: the application. Records come on standard input, as topic, key, value and time with tabs
 * between, and results go to standard output in the same form, topic by topic.
 */
public class Ported {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Consumed<String, String> TEXTS = Consumed.with(TEXT, TEXT);
    private static final Produced<String, String> OUT = Produced.with(TEXT, TEXT);

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, args[0]);
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        Topology topology = args[0].equals("fraud") ? fraud() : dsl(args[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, config, Instant.EPOCH)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] parts = line.split("\t", -1);
                driver
                    .createInputTopic(parts[0], new StringSerializer(), new StringSerializer())
                    .pipeInput(
                        new TestRecord<>(
                            parts[1], parts[2].isEmpty() ? null : parts[2], Instant.ofEpochMilli(Long.parseLong(parts[3]))));
            }
            for (String topic : List.of("out", "alerts")) {
                var output = driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer());
                while (!output.isEmpty()) {
                    TestRecord<String, String> record = output.readRecord();
                    System.out.println(
                        topic + "\t" + record.key() + "\t" + record.value() + "\t" + record.timestamp());
                }
            }
        }
    }

    private static Topology dsl(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (name) {
            case "word-count" -> wordCount(builder);
            case "page-views" -> pageViews(builder);
            case "temperature" -> temperature(builder);
            case "anomalies" -> anomalies(builder);
            case "orders" -> orders(builder);
            case "sensors" -> sensors(builder);
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    private static void wordCount(StreamsBuilder builder) {
        builder.stream("in", TEXTS)
            .flatMapValues(line -> List.of(line.toLowerCase().split(" ")))
            .groupBy((key, word) -> word, Grouped.with(TEXT, TEXT))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(Object::toString)
            .to("out", OUT);
    }

    private static void pageViews(StreamsBuilder builder) {
        KTable<String, String> regions = builder.table("regions", TEXTS);
        builder.stream("in", TEXTS)
            .leftJoin(regions, (page, region) -> region == null ? "UNKNOWN" : region)
            .groupBy((user, region) -> region, Grouped.with(TEXT, TEXT))
            .windowedBy(
                TimeWindows.ofSizeAndGrace(Duration.ofMinutes(5), Duration.ofSeconds(10))
                    .advanceBy(Duration.ofMinutes(1)))
            .count(Materialized.as("views"))
            .toStream()
            .map((window, count) -> KeyValue.pair(text(window), count.toString()))
            .to("out", OUT);
    }

    private static void temperature(StreamsBuilder builder) {
        builder.stream("in", TEXTS)
            .selectKey((sensor, celsius) -> "temp")
            .groupByKey(Grouped.with(TEXT, TEXT))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(5)))
            .reduce((one, other) -> Integer.parseInt(one) > Integer.parseInt(other) ? one : other)
            .toStream()
            .filter((window, celsius) -> Integer.parseInt(celsius) > 20)
            .map((window, celsius) -> KeyValue.pair(text(window), celsius))
            .to("out", OUT);
    }

    private static void anomalies(StreamsBuilder builder) {
        builder.stream("in", TEXTS)
            .map((ignored, user) -> KeyValue.pair(user, user))
            .groupByKey(Grouped.with(TEXT, TEXT))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
            .count()
            .filter((window, count) -> count >= 3)
            .toStream()
            .filter((window, count) -> count != null)
            .map((window, count) -> KeyValue.pair(text(window), count.toString()))
            .to("out", OUT);
    }

    /** Orders with their customer, who may move; what they have ordered is summed by city. */
    private static void orders(StreamsBuilder builder) {
        KTable<String, String> customers = builder.table("customers", TEXTS, Materialized.as("customers"));
        KTable<String, String> orders = builder.table("in", TEXTS, Materialized.as("orders"));
        KTable<String, String> placed =
            orders.leftJoin(
                customers,
                order -> order.split(":")[0],
                (order, city) -> order + ":" + (city == null ? "nowhere" : city),
                Materialized.with(TEXT, TEXT));
        placed.toStream().to("out", OUT);
        placed
            .groupBy(
                (id, order) -> KeyValue.pair(order.split(":")[2], order.split(":")[1]),
                Grouped.with(TEXT, TEXT))
            .aggregate(
                () -> "0",
                (city, sum, total) -> String.valueOf(Long.parseLong(total) + Long.parseLong(sum)),
                (city, sum, total) -> String.valueOf(Long.parseLong(total) - Long.parseLong(sum)),
                Materialized.with(TEXT, TEXT))
            .toStream()
            .to("alerts", OUT);
    }

    /** Visits of sensors, with their largest value, when they are over. */
    private static void sensors(StreamsBuilder builder) {
        KStream<String, String> readings = builder.stream("in", TEXTS);
        readings
            .groupByKey(Grouped.with(TEXT, TEXT))
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(5)))
            .reduce((one, other) -> Integer.parseInt(one) >= Integer.parseInt(other) ? one : other)
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream()
            .map((window, most) -> KeyValue.pair(text(window), most))
            .to("out", OUT);
    }

    private static String text(Windowed<String> window) {
        return window.key() + "@" + window.window().start() + "/" + window.window().end();
    }

    /** Payments of a card beyond its limit within a minute, by the Processor API. */
    private static Topology fraud() {
        return new Topology()
            .addSource("payments", new StringDeserializer(), new StringDeserializer(), "in")
            .addProcessor("rule", Rule::new, "payments")
            .addStateStore(
                Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("spent"), TEXT, Serdes.Long()),
                "rule")
            .addSink("alerts", "alerts", new StringSerializer(), new StringSerializer(), "rule")
            .addSink("out", "out", new StringSerializer(), new StringSerializer(), "rule");
    }

    private static final class Rule extends ContextualProcessor<String, String, String, String> {
        private KeyValueStore<String, Long> spent;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            spent = context.getStateStore("spent");
            context.schedule(Duration.ofMinutes(1), PunctuationType.STREAM_TIME, this::forget);
        }

        @Override
        public void process(Record<String, String> payment) {
            Long before = spent.get(payment.key());
            long now = (before == null ? 0 : before) + Long.parseLong(payment.value());
            spent.put(payment.key(), now);
            if (now > 100) {
                context().forward(payment.withValue("spent " + now), "alerts");
            } else {
                context().forward(payment, "out");
            }
        }

        private void forget(long time) {
            try (KeyValueIterator<String, Long> all = spent.all()) {
                while (all.hasNext()) {
                    KeyValue<String, Long> each = all.next();
                    context().forward(new Record<>(each.key, "forgot " + each.value, time), "out");
                    spent.delete(each.key);
                }
            }
        }
    }
}
