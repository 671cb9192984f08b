import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * A left join of streams and a foreign-key join, whose stores and topics have generated names.
 *
 * Arguments: the broker's address, the state directory and the guarantee. A signal closes it.
 */
public class Unnamed {
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "unnamed");
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[2]);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.mainConsumerPrefix("session.timeout.ms"), 3_000);
        config.put(StreamsConfig.mainConsumerPrefix("heartbeat.interval.ms"), 500);
        config.put(
            StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        KafkaStreams streams = new KafkaStreams(topology().build(), config);
        streams.setStateListener((now, before) -> System.out.println(now));
        Runtime.getRuntime().addShutdownHook(
            new Thread(() -> streams.close(Duration.ofSeconds(60))));
        streams.start();
    }

    static StreamsBuilder topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> text = Consumed.with(Serdes.String(), Serdes.String());
        KStream<String, String> orders = builder.stream("orders-in", text);
        KStream<String, String> payments = builder.stream("payments-in", text);
        JoinWindows window =
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(10), Duration.ofHours(2));
        StreamJoined<String, String, String> serdes =
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
        write(orders.leftJoin(payments, Unnamed::pair, window, serdes), "paid-out");
        KTable<String, String> items = builder.table("items-in", text);
        KTable<String, String> prices = builder.table("prices-in", text);
        write(items.leftJoin(prices, item -> item, Unnamed::pair).toStream(), "priced-out");
        return builder;
    }

    private static String pair(String left, String right) {
        return left + "+" + right;
    }

    private static void write(KStream<String, String> stream, String topic) {
        stream.to(topic, Produced.with(Serdes.String(), Serdes.String()));
    }
}
