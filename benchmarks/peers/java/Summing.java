import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/** Counts the records of each key in large values, as benchmarks/rebalance_worker.py does. */
final class Summing {
    private static final int COUNT_BYTES = 8;

    private Summing() {}

    public static void main(String[] args) throws InterruptedException {
        String servers = args[0];
        String application = args[1];
        String state = args[2];
        String name = args[3];
        int valueBytes = Integer.parseInt(args[4]);
        byte[] owner = name.getBytes(StandardCharsets.UTF_8);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(application + "-in", Consumed.with(Serdes.String(), Serdes.ByteArray()))
                .groupByKey()
                .aggregate(
                        () -> new byte[valueBytes],
                        (key, value, sum) -> {
                            ByteBuffer next = ByteBuffer.allocate(valueBytes);
                            next.putLong(ByteBuffer.wrap(sum).getLong() + 1);
                            return next.array();
                        },
                        Materialized.<String, byte[], KeyValueStore<Bytes, byte[]>>as("sums")
                                .withKeySerde(Serdes.String())
                                .withValueSerde(Serdes.ByteArray()))
                .toStream()
                .mapValues(
                        sum -> ByteBuffer.allocate(COUNT_BYTES + owner.length)
                                .put(sum, 0, COUNT_BYTES)
                                .put(owner)
                                .array())
                .to(application + "-out", Produced.with(Serdes.String(), Serdes.ByteArray()));
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, Integer.parseInt(args[5]));
        properties.put(StreamsConfig.PROBING_REBALANCE_INTERVAL_MS_CONFIG, Math.max(60_000, Integer.parseInt(args[6])));
        properties.put(StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG, Long.parseLong(args[9]));
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, args[10]);
        if (args[10].equals("classic")) { // else the group has them on the broker
            properties.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, Integer.parseInt(args[7]));
            properties.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, Integer.parseInt(args[8]));
        }
        properties.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, name);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        CountDownLatch stopped = new CountDownLatch(1);
        streams.setStateListener(
                (now, before) -> {
                    if (now == KafkaStreams.State.RUNNING) {
                        System.out.println("RUNNING");
                    }
                });
        Runtime.getRuntime().addShutdownHook(
                new Thread(
                        () -> {
                            streams.close(
                                    CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
                                            .withTimeout(Duration.ofSeconds(60)));
                            stopped.countDown();
                        }));
        streams.start();
        stopped.await();
    }
}
