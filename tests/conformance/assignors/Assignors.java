import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Kafka's assignors as the consumer that leads a group does: from the bytes of the members'
 * subscriptions to the bytes of their assignments.
 *
 * A line of standard input is a round: {"assignor", "generation", "topics": {name: [racks of each
 * partition]}, "members": [[id, instance id or null, subscription in hex]]}. The answer is a line:
 * {"members": {id: [[[topic, partition], ...], assignment in hex, the user data that the member has
 * for its next leader, in hex, or null, its subscription once decoded and encoded, in hex]}}, or
 * {"error"}.
 */
public class Assignors {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] none) throws Exception {
        BufferedReader rounds =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = rounds.readLine(); line != null; line = rounds.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("members", answer(JSON.readTree(line)));
            } catch (RuntimeException error) {
                answer.put("error", error.toString());
                error.printStackTrace();
            }
            System.out.println(answer);
        }
    }

    static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    @SuppressWarnings("removal") // ConsumerGroupMetadata is to become an interface
    static ObjectNode answer(JsonNode round) {
        String name = round.get("assignor").asText();
        Map<String, Subscription> subscriptions = new HashMap<>();
        Map<String, String> again = new HashMap<>();
        for (JsonNode member : round.get("members")) {
            byte[] bytes = HEX.parseHex(member.get(2).asText());
            Subscription subscription =
                ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes));
            if (!member.get(1).isNull()) {
                subscription.setGroupInstanceId(Optional.of(member.get(1).asText()));
            }
            subscriptions.put(member.get(0).asText(), subscription);
            again.put(member.get(0).asText(), hex(ConsumerProtocol.serializeSubscription(
                ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes)))));
        }
        Map<String, Assignment> assignments =
            assignor(name)
                .assign(cluster(round.get("topics")), new GroupSubscription(subscriptions))
                .groupAssignment();
        ObjectNode answer = JSON.createObjectNode();
        assignments.forEach((member, assignment) -> {
            ArrayNode entry = answer.putArray(member);
            ArrayNode partitions = entry.addArray();
            for (TopicPartition each : assignment.partitions()) {
                partitions.addArray().add(each.topic()).add(each.partition());
            }
            entry.add(hex(ConsumerProtocol.serializeAssignment(assignment)));
            ConsumerPartitionAssignor members = assignor(name);
            members.onAssignment(assignment, new ConsumerGroupMetadata(
                "group", round.get("generation").asInt(), member, Optional.empty()));
            ByteBuffer userData = members.subscriptionUserData(Set.of());
            entry.add(userData == null ? null : hex(userData));
            entry.add(again.get(member));
        });
        return answer;
    }

    static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HEX.formatHex(copy);
    }

    /** One node for each rack, and one that doesn't say where it is. */
    static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new HashMap<>();
        Node nowhere = new Node(0, "host", 9092);
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(nodes.computeIfAbsent(rack.asText(),
                        each -> new Node(nodes.size() + 1, "host", 9092, each)));
                }
                if (replicas.isEmpty()) {
                    replicas.add(nowhere);
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number++, all[0], all, all));
            }
        });
        List<Node> all = new ArrayList<>(nodes.values());
        all.add(nowhere);
        return new Cluster("cluster", all, partitions, Set.of(), Set.of());
    }
}
