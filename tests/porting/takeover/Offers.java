import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * Orders, joined with their payments.
 *
 * Arguments: the broker's address, the state directory and the guarantee. A signal closes it.
 */
public class Offers {
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "offers");
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[2]);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.mainConsumerPrefix("session.timeout.ms"), 3_000);
        config.put(StreamsConfig.mainConsumerPrefix("heartbeat.interval.ms"), 500);
        // So that records of all inputs are taken in the order of their times.
        config.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, 2_000L);
        // Kafka Streams looks for records without a match once a second by default.
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
        write(orders.join(payments, Offers::pair, window, joined("paid")), "paid-out");
        write(orders.outerJoin(payments, Offers::pair, window, joined("either")), "either-out");
        return builder;
    }

    private static String pair(String left, String right) {
        return left + "+" + right;
    }

    private static StreamJoined<String, String, String> joined(String name) {
        return StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String())
            .withName(name)
            .withStoreName(name);
    }

    private static void write(KStream<String, String> stream, String topic) {
        stream.to(topic, Produced.with(Serdes.String(), Serdes.String()));
    }
}
