import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Copies a topic exactly once until it is ended: {@code java Copy HOST:PORT INPUT OUTPUT GROUP ID}
 *
 * <p>A record goes to the partition of the same number. Each fourth transaction is aborted. After an
 * error of any kind its outcome is unknown: a new producer settles it, and the consumer goes back to
 * what is committed. Prints {@code committed} after each transaction that was.
 */
public final class Copy {
    private static final int RECORDS_A_TRANSACTION = 40;

    public static void main(String[] arguments) {
        String input = arguments[1];
        String output = arguments[2];
        Cluster cluster = new Cluster(arguments[0], "copy");
        KafkaConsumer<String, String> consumer = cluster.consumer(
                "group.id", arguments[3],
                "max.poll.records", Integer.toString(RECORDS_A_TRANSACTION));
        consumer.subscribe(List.of(input));
        KafkaProducer<String, String> producer = null;
        for (int turn = 1; ; turn++) {
            try {
                if (producer == null) {
                    producer = cluster.transactional(arguments[4], "max.block.ms", "5000");
                    goBack(consumer);
                }
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (!records.isEmpty()) {
                    transact(consumer, producer, records, output, turn % 4 == 0);
                }
            } catch (KafkaException error) {
                System.err.println("turn " + turn + ": " + error);
                if (producer != null) {
                    producer.close(Duration.ZERO);
                }
                producer = null;
            }
        }
    }

    private static void transact(
            KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer,
            ConsumerRecords<String, String> records, String output, boolean abort) {
        send(consumer, producer, records, output);
        if (abort) {
            producer.abortTransaction();
            goBack(consumer);
        } else {
            producer.commitTransaction();
            System.out.println("committed");
        }
    }

    /** Begin a transaction, and put copies of the records and their offsets into it. */
    static void send(
            KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer,
            ConsumerRecords<String, String> records, String output) {
        producer.beginTransaction();
        for (ConsumerRecord<String, String> each : records) {
            producer.send(new ProducerRecord<>(output, each.partition(), null, each.value()));
        }
        producer.sendOffsetsToTransaction(next(records), consumer.groupMetadata());
    }

    /** The offsets behind these records. */
    static Map<TopicPartition, OffsetAndMetadata> next(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<String, String> each : records) {
            next.put(
                    new TopicPartition(each.topic(), each.partition()),
                    new OffsetAndMetadata(each.offset() + 1));
        }
        return next;
    }

    static void goBack(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        committed.forEach((partition, offset) ->
                consumer.seek(partition, offset == null ? 0 : offset.offset()));
    }
}
