import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** Runs one topology with Kafka Streams until SIGTERM, as benchmarks/peers/worker.py does. */
final class PeerApplication {
    private PeerApplication() {}

    public static void main(String[] args) throws InterruptedException {
        String topology = args[0];
        StreamsBuilder builder = new StreamsBuilder();
        String left = args[4];
        String right = args[5];
        String output = args[6];
        if (!OneInput.add(topology, builder, left, output)
                && !Joins.add(topology, builder, left, right, output)) {
            throw new IllegalArgumentException("there is no topology " + topology);
        }
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, args[2]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[8]);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, args[7]);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(
                StreamsConfig.TRANSACTIONAL_STATE_STORES_CONFIG,
                Boolean.getBoolean("peers.transactional"));
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        CountDownLatch stopped = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(
                new Thread(
                        () -> {
                            streams.close(Duration.ofSeconds(60));
                            stopped.countDown();
                        }));
        streams.start();
        stopped.await();
    }
}
