import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;

/** Topologies in Kafka Streams on a broker: started, and stopped when all was processed. */
final class Live {
    private static final long PATIENCE_S = 60;
    private static final Map<String, KafkaStreams> RUNNING = new HashMap<>();
    private static final Map<String, Path> DIRECTORIES = new HashMap<>();

    private Live() {}

    static JsonNode answer(JsonNode asked) throws IOException, InterruptedException {
        String id = asked.get("application_id").asText();
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        if (asked.get("live").asText().equals("stop")) {
            answer.put("stopped", RUNNING.remove(id).close(Duration.ofSeconds(PATIENCE_S)));
            InDriver.remove(DIRECTORIES.remove(id));
            return answer;
        }
        Path directory = Files.createTempDirectory("live");
        Properties properties = InDriver.properties(asked.get("topology"), directory);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, asked.get("bootstrap_servers").asText());
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, asked.get("commit_interval_ms").asLong());
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        KafkaStreams streams = new KafkaStreams(Building.topology(asked.get("topology"), properties), properties);
        CountDownLatch runs = new CountDownLatch(1);
        streams.setStateListener(
            (now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    runs.countDown();
                }
            });
        RUNNING.put(id, streams);
        DIRECTORIES.put(id, directory);
        streams.start();
        answer.put("running", runs.await(PATIENCE_S, TimeUnit.SECONDS));
        return answer;
    }
}
