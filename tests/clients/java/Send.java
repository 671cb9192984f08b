import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * An idempotent producer: {@code java Send HOST:PORT TOPIC COUNT} sends the numbers below COUNT to
 * partition 0 in small batches, and prints {@code acknowledged} after each thousand, then {@code
 * done}. A record that is given up is an error.
 */
public final class Send {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[2]);
        Cluster cluster = new Cluster(arguments[0], "send");
        KafkaProducer<String, String> producer = cluster.producer(
                "enable.idempotence", "true",
                "batch.size", "500",
                // A broker that is started again may take long on a busy machine.
                "max.block.ms", Cluster.UNREACHED_MS,
                "delivery.timeout.ms", Cluster.UNREACHED_MS);
        AtomicInteger acknowledged = new AtomicInteger();
        for (int number = 0; number < count; number++) {
            String value = Integer.toString(number);
            producer.send(new ProducerRecord<>(arguments[1], 0, null, value), (sent, error) -> {
                if (error != null) {
                    error.printStackTrace();
                    System.exit(1);
                }
                if (acknowledged.incrementAndGet() % 1_000 == 0) {
                    System.out.println("acknowledged");
                }
            });
            if (number % 100 == 0) {
                Thread.sleep(2); // so that there is time to kill the broker in the middle
            }
        }
        producer.flush();
        System.out.println("done");
        cluster.close();
    }
}
