import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The Java admin client's calls about topics, logs and transactions. */
final class Administration {
    static void addTo(Map<String, Scenarios.Scenario> all) {
        all.put("topics_are_created_described_and_deleted", Administration::topics);
        all.put("offsets_are_listed", Administration::offsets);
        all.put("configs_are_described_and_altered", Administration::configs);
        all.put("partitions_are_added", Administration::partitions);
        all.put("records_are_deleted", Administration::records);
        all.put("producers_are_described", Administration::producers);
        all.put("transactions_are_listed_and_described", Administration::transactions);
        all.put("a_hanging_transaction_is_aborted", Administration::abort);
        all.put("log_directories_are_described", Administration::logDirs);
        all.put("transaction_version_2_is_finalised", Administration::features);
        all.put("each_transaction_has_an_epoch_of_its_own", Administration::epochs);
    }

    private static void topics(Cluster cluster) throws Exception {
        Admin admin = cluster.admin;
        String topic = cluster.topic("topic", 3);
        var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        Cluster.check(described.partitions().size(), 3, "partitions");
        Cluster.check(admin.listTopics().names().get().contains(topic), true, "it is listed");
        Cluster.check(admin.describeCluster().nodes().get().size(), 1, "nodes");
        NewTopic again = new NewTopic(topic, 1, (short) 1);
        Cluster.fails(TopicExistsException.class, () -> admin.createTopics(List.of(again)).all().get());
        String never = cluster.unique("never");
        NewTopic tried = new NewTopic(never, 2, (short) 1);
        admin.createTopics(List.of(tried), new CreateTopicsOptions().validateOnly(true)).all().get();
        Cluster.check(admin.listTopics().names().get().contains(never), false, "it was only tried");
        admin.deleteTopics(List.of(topic)).all().get();
        Cluster.eventually("the topic is gone", () -> !admin.listTopics().names().get().contains(topic));
        Cluster.fails(UnknownTopicOrPartitionException.class,
                () -> admin.describeTopics(List.of(topic)).allTopicNames().get());
    }

    private static void offsets(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer = cluster.producer();
        long now = System.currentTimeMillis();
        for (long before : List.of(5_000L, 1_000L, 3_000L)) {
            producer.send(new ProducerRecord<>(topic, 0, now - before, null, "value")).get();
        }
        Cluster.check(offset(cluster, topic, OffsetSpec.earliest()), 0L, "earliest");
        Cluster.check(offset(cluster, topic, OffsetSpec.latest()), 3L, "latest");
        Cluster.check(offset(cluster, topic, OffsetSpec.maxTimestamp()), 1L, "of the last time");
        Cluster.check(offset(cluster, topic, OffsetSpec.forTimestamp(now - 2_000)), 1L, "by time");
        Cluster.check(offset(cluster, topic, OffsetSpec.earliestLocal()), 0L, "earliest local");
    }

    private static long offset(Cluster cluster, String topic, OffsetSpec spec) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        return cluster.admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get()
                .offset();
    }

    private static void configs(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigEntry wanted = new ConfigEntry("retention.ms", "123456789");
        alter(cluster, resource, wanted);
        Cluster.eventually("the value is altered", () -> value(cluster, resource).equals("123456789"));
        Cluster.fails(InvalidConfigurationException.class, () -> {
            alter(cluster, resource, new ConfigEntry("retention.ms", "much"));
            return null;
        });
        Cluster.check(value(cluster, resource), "123456789", "the value after a refusal");
    }

    private static void alter(Cluster cluster, ConfigResource resource, ConfigEntry entry)
            throws Exception {
        Collection<AlterConfigOp> set = List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
        cluster.admin.incrementalAlterConfigs(Map.of(resource, set)).all().get();
    }

    private static String value(Cluster cluster, ConfigResource resource) throws ExecutionException,
            InterruptedException {
        return cluster.admin.describeConfigs(List.of(resource)).all().get().get(resource)
                .get("retention.ms").value();
    }

    private static void partitions(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        producer.beginTransaction();
        Cluster.send(producer, topic, 0, List.of("a"));
        cluster.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        Cluster.send(producer, topic, 2, List.of("b"));
        producer.commitTransaction();
        Cluster.check(Set.copyOf(cluster.values(topic, "read_committed")), Set.of("a", "b"), "values");
    }

    private static void records(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        Cluster.send(cluster.producer("batch.size", "1"), topic, 0, List.of("a", "b", "c", "d"));
        long low = cluster.admin
                .deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(2)))
                .lowWatermarks().get(partition).get().lowWatermark();
        Cluster.check(low, 2L, "low watermark");
        Cluster.check(offset(cluster, topic, OffsetSpec.earliest()), 2L, "earliest");
        Cluster.check(cluster.values(topic, "read_committed"), List.of("c", "d"), "values");
    }

    private static void producers(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        producer.beginTransaction();
        Cluster.send(producer, topic, 0, List.of("a", "b"));
        List<ProducerState> open = states(cluster, topic);
        Cluster.check(open.size(), 1, "producers");
        Cluster.check(open.get(0).currentTransactionStartOffset().orElse(-1), 0L, "start offset");
        producer.commitTransaction();
        Cluster.eventually("the transaction is over",
                () -> states(cluster, topic).get(0).currentTransactionStartOffset().isEmpty());
    }

    private static List<ProducerState> states(Cluster cluster, String topic)
            throws ExecutionException, InterruptedException {
        TopicPartition partition = new TopicPartition(topic, 0);
        return new ArrayList<>(cluster.admin.describeProducers(List.of(partition))
                .partitionResult(partition).get().activeProducers());
    }

    private static void transactions(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 2);
        String id = cluster.unique("id");
        KafkaProducer<String, String> producer = cluster.transactional(id);
        producer.beginTransaction();
        Cluster.send(producer, topic, 1, List.of("a"));
        Cluster.check(state(cluster, id), TransactionState.ONGOING, "state in the listing");
        var described = cluster.admin.describeTransactions(List.of(id)).description(id).get();
        Cluster.check(described.state(), TransactionState.ONGOING, "state");
        Cluster.check(described.topicPartitions(), Set.of(new TopicPartition(topic, 1)), "partitions");
        producer.commitTransaction();
        Cluster.eventually("the transaction is complete",
                () -> state(cluster, id) == TransactionState.COMPLETE_COMMIT);
    }

    private static TransactionState state(Cluster cluster, String id)
            throws ExecutionException, InterruptedException {
        return cluster.admin.listTransactions().all().get().stream()
                .filter(each -> each.transactionalId().equals(id))
                .map(TransactionListing::state).findFirst().orElse(null);
    }

    private static void abort(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = cluster.transactional(cluster.unique("id"));
        producer.beginTransaction();
        Cluster.send(producer, topic, 0, List.of("hanging"));
        ProducerState state = states(cluster, topic).get(0);
        cluster.admin.abortTransaction(new AbortTransactionSpec(
                partition, state.producerId(), (short) state.producerEpoch(),
                state.coordinatorEpoch().orElse(0))).all().get();
        Cluster.send(cluster.producer(), topic, 0, List.of("behind it"));
        Cluster.check(cluster.values(topic, "read_committed"), List.of("behind it"), "values");
    }

    private static void logDirs(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        Cluster.send(cluster.producer(), topic, 0, List.of("x".repeat(1_000)));
        var directories = cluster.admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
        long size = directories.values().stream()
                .map(each -> each.replicaInfos().get(new TopicPartition(topic, 0)))
                .mapToLong(each -> each == null ? 0 : each.size()).sum();
        Cluster.check(size > 1_000, true, "the size of the log, " + size);
    }

    /** Transactions v2: each end raises the epoch, so that a late write of the last one is refused. */
    private static void epochs(Cluster cluster) throws Exception {
        String topic = cluster.topic("topic", 1);
        String id = cluster.unique("id");
        KafkaProducer<String, String> producer = cluster.transactional(id);
        List<Integer> found = new ArrayList<>();
        for (boolean commit : List.of(true, false, true)) {
            producer.beginTransaction();
            Cluster.send(producer, topic, 0, List.of("value"));
            found.add(cluster.admin.describeTransactions(List.of(id)).description(id).get()
                    .producerEpoch());
            if (commit) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        int first = found.get(0);
        Cluster.check(found, List.of(first, first + 1, first + 2), "epochs");
    }

    private static void features(Cluster cluster) throws Exception {
        var found = cluster.admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        Cluster.check(found.containsKey("transaction.version"), true, "finalised: " + found.keySet());
        Cluster.check(found.get("transaction.version").maxVersionLevel(), (short) 2, "its level");
    }
}
