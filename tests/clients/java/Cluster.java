import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What a scenario works with: clients of one broker, closed at the end, and names of its own. */
final class Cluster implements AutoCloseable {
    /** Only ends a wait that would never end: on a busy machine everything takes long. */
    static final long PATIENCE_MS = 300_000;
    /** A time-out that nobody waits for: what comes has not come because of it. */
    static final String UNREACHED_MS = Long.toString(2 * PATIENCE_MS);

    final String servers;
    final Admin admin;
    private final String name;
    private final List<Runnable> made = new ArrayList<>();

    Cluster(String servers, String name) {
        this.servers = servers;
        this.name = name.substring(0, Math.min(name.length(), 40));
        this.admin = Admin.create(settings());
        made.add(() -> admin.close(Duration.ZERO));
    }

    @Override
    public void close() {
        for (Runnable each : made) {
            each.run();
        }
    }

    /** A name that nothing else has. */
    String unique(String stem) {
        return name + "-" + stem + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    /** A new topic whose records are kept, whatever their timestamps say. */
    String topic(String stem, int partitions) throws Exception {
        String topic = unique(stem);
        NewTopic asked = new NewTopic(topic, partitions, (short) 1);
        admin.createTopics(List.of(asked.configs(Map.of("retention.ms", "-1")))).all().get();
        // Another broker thread may answer than the one that made it.
        eventually("the topic is there", () -> admin.describeTopics(List.of(topic)).allTopicNames()
                .get().get(topic).partitions().stream().allMatch(each -> each.leader() != null));
        return topic;
    }

    KafkaProducer<String, String> producer(String... settings) {
        Properties properties = settings(settings);
        properties.putIfAbsent("linger.ms", "0");
        KafkaProducer<String, String> producer = new KafkaProducer<>(
                properties, new StringSerializer(), new StringSerializer());
        made.add(() -> producer.close(Duration.ZERO));
        return producer;
    }

    /** A producer with this transactional id that has been initialised. */
    KafkaProducer<String, String> transactional(String id, String... settings) {
        String[] more = new String[settings.length + 2];
        System.arraycopy(settings, 0, more, 2, settings.length);
        more[0] = "transactional.id";
        more[1] = id;
        KafkaProducer<String, String> producer = producer(more);
        producer.initTransactions();
        return producer;
    }

    KafkaConsumer<String, String> consumer(String... settings) {
        Properties properties = settings(settings);
        properties.putIfAbsent("isolation.level", "read_committed");
        properties.putIfAbsent("enable.auto.commit", "false");
        properties.putIfAbsent("auto.offset.reset", "earliest");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                properties, new StringDeserializer(), new StringDeserializer());
        made.add(consumer::close);
        return consumer;
    }

    /** Values in the order of their reading, up to the end that the isolation level allows. */
    List<String> values(String topic, String isolation) {
        List<String> found = new ArrayList<>();
        for (ConsumerRecord<String, String> each : records(topic, isolation)) {
            found.add(each.value());
        }
        return found;
    }

    List<ConsumerRecord<String, String>> records(String topic, String isolation) {
        KafkaConsumer<String, String> consumer = consumer("isolation.level", isolation);
        List<TopicPartition> partitions = partitions(consumer, topic);
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!reached(consumer, ends)) {
            check(System.currentTimeMillis() < deadline, true, "all is read: " + found.size());
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    static List<TopicPartition> partitions(KafkaConsumer<?, ?> consumer, String topic) {
        List<TopicPartition> found = new ArrayList<>();
        consumer.partitionsFor(topic).forEach(
                each -> found.add(new TopicPartition(topic, each.partition())));
        return found;
    }

    private static boolean reached(KafkaConsumer<?, ?> consumer, Map<TopicPartition, Long> ends) {
        return ends.entrySet().stream().allMatch(
                each -> consumer.position(each.getKey()) >= each.getValue());
    }

    /** Send these values to a partition; returns when all are acknowledged. */
    static void send(
            KafkaProducer<String, String> producer, String topic, int partition,
            Collection<String> values) {
        values.forEach(each -> producer.send(new ProducerRecord<>(topic, partition, null, each)));
        producer.flush();
    }

    Properties settings(String... settings) {
        Map<String, String> found = new HashMap<>(Map.of("bootstrap.servers", servers));
        for (int at = 0; at < settings.length; at += 2) {
            found.put(settings[at], settings[at + 1]);
        }
        Properties properties = new Properties();
        properties.putAll(found);
        return properties;
    }

    static void check(Object found, Object expected, String what) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError(what + ": " + found + " and not " + expected);
        }
    }

    /** The error that the call ends with, or the cause that it wraps; it must be of this type. */
    static <E extends Throwable> E fails(Class<E> type, Callable<?> call) {
        Throwable error = null;
        try {
            call.call();
        } catch (Throwable thrown) {
            error = thrown;
        }
        for (Throwable at = error; at != null; at = at.getCause()) {
            if (type.isInstance(at)) {
                return type.cast(at);
            }
        }
        throw new AssertionError(error + " and not " + type.getSimpleName(), error);
    }

    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        Exception last = null;
        while (System.currentTimeMillis() < deadline) {
            try {
                if (condition.call()) {
                    return;
                }
            } catch (java.util.concurrent.ExecutionException error) {
                last = error;
            }
            Thread.sleep(20);
        }
        throw new AssertionError(what + ": not in " + PATIENCE_MS + " ms", last);
    }
}
