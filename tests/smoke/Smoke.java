import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.streams.tests.SmokeTestDriver;
import org.apache.kafka.streams.tests.SmokeTestUtil;

/**
 * Has the driver of Kafka's StreamsSmokeTest write input and verify every output of the application.
 *
 * <p>The driver reads the end of each output twice, for readers of uncommitted and of committed
 * records, and refutes an application that writes in between. So it is asked only when nobody has
 * written for longer than a killed instance's session.
 *
 * <p>Arguments: the broker, the number of keys, of records for each key, and the seconds to write
 * for. It prints "generated" when all input is written, and "verified" or "refuted" at the end.
 */
public final class Smoke {
  private static final Duration STILL = Duration.ofSeconds(15);
  private static final Duration LIMIT = Duration.ofMinutes(5);

  private Smoke() {}

  public static void main(String[] arguments) throws InterruptedException {
    String servers = arguments[0];
    int keys = Integer.parseInt(arguments[1]);
    int recordsPerKey = Integer.parseInt(arguments[2]);
    Duration duration = Duration.ofSeconds(Long.parseLong(arguments[3]));
    Map<String, Set<Integer>> written =
        SmokeTestDriver.generate(servers, keys, recordsPerKey, duration);
    System.out.println("generated");
    awaitStillness(servers);
    SmokeTestUtil.VerificationResult result =
        SmokeTestDriver.verify(servers, written, recordsPerKey, true);
    System.out.println(result.passed() ? "verified" : "refuted\n" + result.result());
  }

  /** Waits until no topic has had a new record for a while. */
  private static void awaitStillness(String servers) throws InterruptedException {
    Properties properties = new Properties();
    properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
      List<TopicPartition> partitions =
          consumer.listTopics().entrySet().stream()
              .filter(each -> !each.getKey().startsWith("__"))
              .flatMap(each -> each.getValue().stream())
              .map(each -> new TopicPartition(each.topic(), each.partition()))
              .toList();
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long startNanos = System.nanoTime();
      long changedNanos = startNanos;
      while (System.nanoTime() - changedNanos < STILL.toNanos()) {
        if (System.nanoTime() - startNanos > LIMIT.toNanos()) {
          throw new IllegalStateException("topics still grow after " + LIMIT);
        }
        Thread.sleep(200);
        Map<TopicPartition, Long> now = consumer.endOffsets(partitions);
        if (!now.equals(ends)) {
          ends = now;
          changedNanos = System.nanoTime();
        }
      }
    }
  }
}
