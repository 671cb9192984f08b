import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;

/** What the Java consumer asks for: fetch sessions, codecs, positions, groups. */
final class Reading {
    static void addTo(Map<String, Scenarios.Scenario> all) {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            all.put("records_compressed_with_" + codec, cluster -> compressed(cluster, codec));
        }
        all.put("a_fetch_session_over_many_partitions", Reading::session);
        all.put("a_reader_waits_for_the_open_transaction", Reading::openTransaction);
        all.put("positions_by_time", Reading::positions);
        all.put("keys_headers_and_timestamps", Reading::headers);
        all.put("two_members_share_a_topic", Reading::group);
    }

    private static void compressed(Cluster cluster, String codec) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer =
                cluster.producer("compression.type", codec, "linger.ms", "20");
        List<String> expected =
                IntStream.range(0, 500).mapToObj(each -> each + "-" + "abc".repeat(50)).toList();
        Cluster.send(producer, topic, 0, expected);
        Cluster.check(cluster.values(topic, "read_committed"), expected, "values");
    }

    /** Rounds that touch few of many partitions: the others are left out of an incremental fetch. */
    private static void session(Cluster cluster) throws Exception {
        int partitions = 30;
        String topic = cluster.topic("topic", partitions);
        String other = cluster.topic("other", 1);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        KafkaConsumer<String, String> consumer = cluster.consumer("fetch.max.wait.ms", "100");
        List<TopicPartition> assigned = Cluster.partitions(consumer, topic);
        consumer.assign(assigned);
        consumer.seekToBeginning(assigned);
        for (int round = 0; round < 12; round++) {
            Set<String> expected = new TreeSet<>();
            producer.beginTransaction();
            for (int each : List.of(round, (round * 7) % partitions, partitions - 1)) {
                String value = round + "/" + each;
                producer.send(new ProducerRecord<>(topic, each, null, value));
                expected.add(value);
            }
            producer.commitTransaction();
            if (round == 6) { // a partition comes into the session, one leaves it for a while
                List<TopicPartition> more = new ArrayList<>(assigned);
                more.add(new TopicPartition(other, 0));
                consumer.assign(more);
                consumer.seekToBeginning(List.of(new TopicPartition(other, 0)));
                producer.beginTransaction();
                Cluster.send(producer, other, 0, List.of("other"));
                producer.commitTransaction();
                expected.add("other");
            }
            Set<String> found = new TreeSet<>();
            Cluster.eventually("round " + round + " is read", () -> {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    found.add(each.value());
                }
                return found.size() >= expected.size();
            });
            Cluster.check(found, expected, "values of round " + round);
        }
    }

    private static void openTransaction(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        KafkaProducer<String, String> plain = cluster.producer();
        KafkaConsumer<String, String> consumer = cluster.consumer(
                "fetch.max.wait.ms", Cluster.UNREACHED_MS,
                "request.timeout.ms", Cluster.UNREACHED_MS);
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        producer.beginTransaction();
        Cluster.send(producer, topic, 0, List.of("a"));
        Cluster.send(plain, topic, 0, List.of("b"));
        Cluster.check(consumer.poll(Duration.ofMillis(300)).count(), 0, "records before the end");
        producer.commitTransaction();
        List<String> found = new ArrayList<>();
        Cluster.eventually("the long poll ends with the transaction, and both are read", () -> {
            consumer.poll(Duration.ofMillis(100)).forEach(each -> found.add(each.value()));
            return found.size() == 2;
        });
        Cluster.check(found, List.of("a", "b"), "values");
        Cluster.check(consumer.currentLag(partition).orElse(-1), 0L, "lag");
    }

    private static void positions(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = cluster.producer();
        long first = System.currentTimeMillis() - 10_000;
        for (int number = 0; number < 10; number++) {
            long time = first + number * 1_000;
            producer.send(new ProducerRecord<>(topic, 0, time, null, "value")).get();
        }
        KafkaConsumer<String, String> consumer = cluster.consumer();
        Cluster.check(
                consumer.beginningOffsets(List.of(partition)), Map.of(partition, 0L), "beginning");
        Cluster.check(consumer.endOffsets(List.of(partition)), Map.of(partition, 10L), "end");
        var found = consumer.offsetsForTimes(Map.of(partition, first + 2_500)).get(partition);
        Cluster.check(found.offset(), 3L, "the first at or after the time");
        Cluster.check(found.timestamp(), first + 3_000, "its time");
        var none = consumer.offsetsForTimes(Map.of(partition, first + 60_000)).get(partition);
        Cluster.check(none, null, "none so late");
    }

    private static void headers(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        byte[] content = "content".getBytes(StandardCharsets.UTF_8);
        long time = System.currentTimeMillis() - 5_000;
        ProducerRecord<String, String> record = new ProducerRecord<>(topic, 0, time, "key", (String) null);
        record.headers().add(new RecordHeader("name", content));
        record.headers().add(new RecordHeader("none", (byte[]) null));
        cluster.producer().send(record).get();
        ConsumerRecord<String, String> found = cluster.records(topic, "read_committed").get(0);
        Cluster.check(found.key(), "key", "key");
        Cluster.check(found.value(), null, "value");
        Cluster.check(found.timestamp(), time, "timestamp");
        Cluster.check(
                new String(found.headers().lastHeader("name").value(), StandardCharsets.UTF_8),
                "content", "header");
        Cluster.check(found.headers().lastHeader("none").value(), null, "empty header");
    }

    private static void group(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 4);
        String[] settings = {
            "group.id", cluster.unique("group"), "heartbeat.interval.ms", "200",
            "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        };
        KafkaConsumer<String, String> one = cluster.consumer(settings);
        KafkaConsumer<String, String> two = cluster.consumer(settings);
        one.subscribe(List.of(topic));
        two.subscribe(List.of(topic));
        // A member joins in its poll, and waits there for the other: a thread for each. It goes on
        // when it has two: they may be what is left of four, and the other member's come later.
        AtomicInteger assigned = new AtomicInteger();
        AtomicBoolean ended = new AtomicBoolean();
        Thread other = new Thread(() -> {
            while (!ended.get()) {
                two.poll(Duration.ofMillis(50));
                assigned.set(two.assignment().size());
            }
        });
        other.start();
        try {
            Cluster.eventually("each has two", () -> {
                one.poll(Duration.ofMillis(50));
                return one.assignment().size() == 2 && assigned.get() == 2;
            });
        } finally {
            ended.set(true);
            other.join();
        }
        TopicPartition mine = one.assignment().iterator().next();
        one.commitSync(Map.of(mine, new OffsetAndMetadata(0, "note")));
        Cluster.check(one.committed(Set.of(mine)).get(mine).metadata(), "note", "metadata");
    }
}
