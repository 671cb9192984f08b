import java.util.List;
import org.apache.kafka.clients.producer.KafkaProducer;

/**
 * One transaction of one record: {@code java Once HOST:PORT TOPIC ID VALUE commit|open}
 *
 * <p>Prints {@code committed}; or {@code open}, when the record is there, and waits to be ended.
 */
public final class Once {
    public static void main(String[] arguments) throws Exception {
        Cluster cluster = new Cluster(arguments[0], "once");
        KafkaProducer<String, String> producer = cluster.transactional(arguments[2]);
        producer.beginTransaction();
        Cluster.send(producer, arguments[1], 0, List.of(arguments[3]));
        if (arguments[4].equals("open")) {
            System.out.println("open");
            Thread.sleep(Long.MAX_VALUE);
        }
        producer.commitTransaction();
        System.out.println("committed");
        cluster.close();
    }
}
