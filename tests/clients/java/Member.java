import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.StaleMemberEpochException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/**
 * A member of a group: {@code java Member HOST:PORT TOPIC GROUP [SETTING=VALUE ...]}
 *
 * <p>The settings are the consumer's, and these: {@code regex}, to subscribe to instead of the topic;
 * {@code output}, a topic that records are copied to, transaction by transaction, with the offsets in
 * them, and {@code transactional.id} for that. Without an output each record is consumed at least
 * once and then committed. Says what happens to it, a line an event, and goes on until it gets
 * SIGTERM.
 */
public final class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final Cluster cluster;
    private final KafkaConsumer<String, String> consumer;
    private final String output;
    private final String regex;
    private final String transactionalId;
    private final Map<TopicPartition, OffsetAndMetadata> pending = new HashMap<>();
    private KafkaProducer<String, String> producer;
    private volatile boolean ended;

    private Member(String servers, String group, Map<String, String> settings) {
        cluster = new Cluster(servers, "member");
        output = settings.remove("output");
        regex = settings.remove("regex");
        transactionalId = settings.remove("transactional.id");
        List<String> all = new ArrayList<>(List.of(
                "group.id", group,
                "fetch.max.wait.ms", "100",
                "max.poll.records", "40",
                "reconnect.backoff.max.ms", "500"));
        settings.forEach((name, value) -> all.addAll(List.of(name, value)));
        consumer = cluster.consumer(all.toArray(new String[0]));
    }

    public static void main(String[] arguments) {
        Map<String, String> settings = new HashMap<>();
        for (int at = 3; at < arguments.length; at++) {
            String[] pair = arguments[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Member member = new Member(arguments[0], arguments[2], settings);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.ended = true;
            try {
                main.join();
            } catch (InterruptedException ignored) {
                // Then it ends as if it were killed.
            }
        }));
        member.run(arguments[1]);
    }

    private void run(String topic) {
        if (regex == null) {
            consumer.subscribe(List.of(topic), this);
        } else {
            consumer.subscribe(new SubscriptionPattern(regex), this);
        }
        while (!ended) {
            if (output != null && producer == null) {
                startProducer();
                continue;
            }
            ConsumerRecords<String, String> records = poll();
            for (ConsumerRecord<String, String> each : records) {
                say("consumed", each.partition() + " " + each.offset() + " " + each.value());
            }
            System.out.flush();
            if (output == null) {
                pending.putAll(Copy.next(records));
                commit();
            } else if (!records.isEmpty()) {
                transact(records);
            }
        }
        consumer.close();
        say("closed", "");
        System.out.flush();
    }

    /** A member that was fenced while it asked for its offsets hears of it here; it joins again. */
    private ConsumerRecords<String, String> poll() {
        try {
            return consumer.poll(POLL);
        } catch (UnknownMemberIdException | StaleMemberEpochException error) {
            System.err.println("poll: " + error);
            return ConsumerRecords.empty();
        }
    }

    /** What is refused stays pending until it is revoked or lost. */
    private void commit() {
        if (pending.isEmpty()) {
            return;
        }
        long asked = System.nanoTime();
        try {
            consumer.commitSync(pending, PATIENCE);
            sayCommitted(pending, asked);
            pending.clear();
        } catch (KafkaException error) {
            System.err.println("commit: " + error);
        }
    }

    /** After an error the outcome is unknown: a new producer settles it. */
    private void transact(ConsumerRecords<String, String> records) {
        long asked = System.nanoTime();
        try {
            Copy.send(consumer, producer, records, output);
            producer.commitTransaction();
            sayCommitted(Copy.next(records), asked);
        } catch (KafkaException error) {
            System.err.println("transaction: " + error);
            producer.close(Duration.ZERO);
            producer = null;
        }
    }

    private void startProducer() {
        try {
            producer = cluster.transactional(
                    transactionalId, "max.block.ms", "10000", "transaction.timeout.ms", "6000");
            Copy.goBack(consumer);
        } catch (KafkaException error) {
            System.err.println("begins anew: " + error);
            producer = null;
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assigned", numbers(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        pending.keySet().removeAll(partitions);
        say("revoked", numbers(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        pending.keySet().removeAll(partitions);
        say("lost", numbers(partitions));
    }

    private static String numbers(Collection<TopicPartition> partitions) {
        return partitions.stream()
                .map(each -> Integer.toString(each.partition()))
                .collect(Collectors.joining(" "));
    }

    private static void sayCommitted(Map<TopicPartition, OffsetAndMetadata> next, long asked) {
        next.forEach((partition, offset) ->
                say("committed", partition.partition() + " " + offset.offset() + " " + asked));
    }

    private static void say(String what, String numbers) {
        System.out.println(System.nanoTime() + " " + what + " " + numbers);
    }
}
