import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RecordTooLargeException;

/** Transactions as the Java producer runs them. */
final class Transactions {
    private static final String COMMITTED = "read_committed";

    static void addTo(Map<String, Scenarios.Scenario> all) {
        all.put("committed_is_read_and_aborted_is_not", Transactions::commitAndAbort);
        all.put("read_process_write", Transactions::readProcessWrite);
        all.put("a_second_producer_fences_the_first", Transactions::fencing);
        all.put("a_transaction_that_takes_too_long_is_aborted", Transactions::timeout);
        all.put("a_producer_goes_on_after_a_record_that_was_too_large", Transactions::tooLarge);
        all.put("a_transaction_over_many_partitions", Transactions::manyPartitions);
        all.put("transactions_without_a_record", Transactions::empty);
        all.put("offsets_of_a_member_that_was_left_behind_are_refused", Transactions::leftBehind);
        all.put("an_idempotent_producer_keeps_the_order", Transactions::idempotent);
    }

    private static void commitAndAbort(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        List<String> expected = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            producer.beginTransaction();
            Cluster.send(producer, topic, 0, List.of(number + "a", number + "b"));
            if (number % 3 == 1) {
                producer.abortTransaction();
            } else {
                producer.commitTransaction();
                expected.addAll(List.of(number + "a", number + "b"));
            }
        }
        Cluster.check(cluster.values(topic, COMMITTED), expected, "committed values");
        Cluster.check(cluster.values(topic, "read_uncommitted").size(), 40, "all values");
    }

    private static void readProcessWrite(Cluster cluster) throws Exception {
        String input = cluster.topic("input", 2);
        String output = cluster.topic("output", 1);
        KafkaProducer<String, String> source = cluster.producer();
        TreeSet<String> expected = new TreeSet<>();
        for (int number = 0; number < 300; number++) {
            source.send(new ProducerRecord<>(input, number % 2, null, "value-" + number));
            expected.add("VALUE-" + number);
        }
        source.flush();
        String group = cluster.unique("group");
        KafkaConsumer<String, String> consumer =
                cluster.consumer("group.id", group, "max.poll.records", "25");
        consumer.subscribe(List.of(input));
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        copy(consumer, producer, output, expected.size());
        List<String> found = cluster.values(output, COMMITTED);
        Cluster.check(found.size(), expected.size(), "records of the output");
        Cluster.check(new TreeSet<>(found), expected, "values of the output");
        Map<TopicPartition, OffsetAndMetadata> offsets =
                cluster.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Cluster.check(offsets.get(new TopicPartition(input, 0)).offset(), 150L, "offset of 0");
        Cluster.check(offsets.get(new TopicPartition(input, 1)).offset(), 150L, "offset of 1");
    }

    /** Each third transaction is aborted, and its records are read again. */
    private static void copy(
            KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer,
            String output, int count) {
        int done = 0;
        long deadline = System.currentTimeMillis() + Cluster.PATIENCE_MS;
        for (int turn = 0; done < count; turn++) {
            Cluster.check(System.currentTimeMillis() < deadline, true, "copied in time: " + done);
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) {
                continue;
            }
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            for (ConsumerRecord<String, String> each : records) {
                producer.send(new ProducerRecord<>(output, each.value().toUpperCase()));
                next.put(
                        new TopicPartition(each.topic(), each.partition()),
                        new OffsetAndMetadata(each.offset() + 1));
            }
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            if (turn % 3 == 2) {
                producer.abortTransaction();
                records.partitions().forEach(
                        each -> consumer.seek(each, records.records(each).get(0).offset()));
            } else {
                producer.commitTransaction();
                done += records.count();
            }
        }
    }

    private static void fencing(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        String id = cluster.unique("id");
        KafkaProducer<String, String> old = cluster.transactional(id);
        old.beginTransaction();
        Cluster.send(old, topic, 0, List.of("of the old one"));
        KafkaProducer<String, String> young = cluster.transactional(id);
        Cluster.fails(ProducerFencedException.class, () -> {
            old.commitTransaction();
            return null;
        });
        young.beginTransaction();
        Cluster.send(young, topic, 0, List.of("of the new one"));
        young.commitTransaction();
        Cluster.check(cluster.values(topic, COMMITTED), List.of("of the new one"), "values");
    }

    private static void timeout(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer =
                cluster.transactional(cluster.unique("id"), "transaction.timeout.ms", "1000");
        producer.beginTransaction();
        Cluster.send(producer, topic, 0, List.of("too late"));
        Cluster.eventually("the last stable offset passes the transaction", () -> cluster.admin
                .listOffsets(Map.of(partition, OffsetSpec.latest()),
                        new ListOffsetsOptions(IsolationLevel.READ_COMMITTED))
                .partitionResult(partition).get().offset() == 2);
        Cluster.fails(KafkaException.class, () -> {
            producer.commitTransaction();
            return null;
        });
        Cluster.check(cluster.values(topic, COMMITTED), List.of(), "values");
    }

    private static void tooLarge(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer =
                cluster.transactional(cluster.unique("id"), "max.request.size", "5000000");
        for (String value : List.of("before", "x".repeat(2_000_000), "after")) {
            producer.beginTransaction();
            var sent = producer.send(new ProducerRecord<>(topic, 0, null, value));
            if (value.length() < 10) {
                producer.commitTransaction();
                continue;
            }
            Cluster.fails(RecordTooLargeException.class, sent::get);
            Cluster.fails(KafkaException.class, () -> {
                producer.commitTransaction();
                return null;
            });
            producer.abortTransaction();
        }
        Cluster.check(cluster.values(topic, COMMITTED), List.of("before", "after"), "values");
    }

    private static void manyPartitions(Cluster cluster) throws Exception {
        int partitions = 60;
        String topic = cluster.topic("topic", partitions);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        for (String value : List.of("a", "aborted", "b", "c")) {
            producer.beginTransaction();
            IntStream.range(0, partitions).forEach(
                    each -> producer.send(new ProducerRecord<>(topic, each, null, value)));
            if (value.equals("aborted")) {
                producer.abortTransaction();
            } else {
                producer.commitTransaction();
            }
        }
        List<String> found = cluster.values(topic, COMMITTED);
        Cluster.check(found.size(), 3 * partitions, "committed values");
        Cluster.check(found.contains("aborted"), false, "aborted values");
    }

    private static void empty(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        producer.beginTransaction();
        producer.commitTransaction();
        producer.beginTransaction();
        producer.abortTransaction();
        producer.beginTransaction();
        Cluster.send(producer, topic, 0, List.of("a"));
        producer.commitTransaction();
        Cluster.check(cluster.values(topic, COMMITTED), List.of("a"), "values");
    }

    private static void leftBehind(Cluster cluster) throws Exception {
        String input = cluster.topic("input", 1);
        String output = cluster.topic("output", 1);
        String group = cluster.unique("group");
        KafkaConsumer<String, String> consumer =
                cluster.consumer("group.id", group, "session.timeout.ms", "6000");
        consumer.subscribe(List.of(input));
        Cluster.eventually("the member has joined", () -> {
            consumer.poll(Duration.ofMillis(100));
            return !consumer.assignment().isEmpty();
        });
        var stale = consumer.groupMetadata();
        consumer.unsubscribe();
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        producer.beginTransaction();
        Cluster.send(producer, output, 0, List.of("of one that left"));
        var offsets = Map.of(new TopicPartition(input, 0), new OffsetAndMetadata(1));
        Cluster.fails(CommitFailedException.class, () -> {
            producer.sendOffsetsToTransaction(offsets, stale);
            producer.commitTransaction();
            return null;
        });
        producer.abortTransaction();
        producer.beginTransaction();
        Cluster.send(producer, output, 0, List.of("after"));
        producer.commitTransaction();
        Cluster.check(cluster.values(output, COMMITTED), List.of("after"), "values");
    }

    private static void idempotent(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer =
                cluster.producer("enable.idempotence", "true", "batch.size", "200");
        List<String> expected = IntStream.range(0, 5_000).mapToObj(Integer::toString).toList();
        Cluster.send(producer, topic, 0, expected);
        Cluster.check(cluster.values(topic, COMMITTED), expected, "values");
    }
}
