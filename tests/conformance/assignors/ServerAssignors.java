import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Runs the assignors of Kafka's group coordinator.
 *
 * A line of standard input is a group: {"assignor", "partitions": {topic id: count}, "members": [[id,
 * instance id or null, [topic id, ...], {topic id: [partition, ...]}]]}. The answer is a line: {member
 * id: {topic id: [partition, ...]}}.
 */
public class ServerAssignors {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] none) throws Exception {
        BufferedReader groups =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = groups.readLine(); line != null; line = groups.readLine()) {
            System.out.println(answer(JSON.readTree(line)));
        }
    }

    record Topics(Map<Uuid, Integer> partitions) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return partitions.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }

    static ObjectNode answer(JsonNode group) {
        Map<Uuid, Integer> partitions = new HashMap<>();
        group.get("partitions").fields().forEachRemaining(
            topic -> partitions.put(id(topic.getKey()), topic.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : group.get("members")) {
            String memberId = member.get(0).asText();
            Set<Uuid> topics = new HashSet<>();
            member.get(2).forEach(topic -> topics.add(id(topic.asText())));
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            member.get(3).fields().forEachRemaining(topic -> {
                for (JsonNode partition : topic.getValue()) {
                    Uuid topicId = id(topic.getKey());
                    assigned.computeIfAbsent(topicId, each -> new HashSet<>()).add(partition.asInt());
                    owners.computeIfAbsent(topicId, each -> new HashMap<>())
                        .put(partition.asInt(), memberId);
                }
            });
            subscriptions.add(topics);
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.get(1).textValue()), topics,
                new Assignment(assigned)));
        }
        SubscriptionType type = subscriptions.size() == 1
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        ConsumerGroupPartitionAssignor assignor =
            group.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        ObjectNode answer = JSON.createObjectNode();
        assignor.assign(new GroupSpecImpl(members, type, owners), new Topics(partitions)).members()
            .forEach((memberId, target) -> {
                ObjectNode mine = answer.putObject(memberId);
                target.partitions().forEach((topic, each) -> each.forEach(
                    mine.putArray(new UUID(topic.getMostSignificantBits(),
                        topic.getLeastSignificantBits()).toString())::add));
            });
        return answer;
    }

    static Uuid id(String text) {
        UUID id = UUID.fromString(text);
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }
}
