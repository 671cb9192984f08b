import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils.RackAwareOptimizationParams;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Optimizes placements of tasks by racks, as Kafka Streams does (KIP-925).
 *
 * A line of standard input is a group: {"strategy", "traffic", "overlap", "tasks": {task: {"sources":
 * [[rack, ...], ...], "changelogs": [[rack, ...], ...]}}, "clients": [{"rack", "active": [task, ...],
 * "standby": [task, ...]}]}. Clients are numbered by their place. The answer is a line: {"clients":
 * [{"active": [task, ...], "standby": [task, ...]}]}, first the active tasks optimized, then the
 * standby tasks.
 */
public class RackOptimizer {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] none) throws Exception {
        BufferedReader groups =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = groups.readLine(); line != null; line = groups.readLine()) {
            System.out.println(answer(JSON.readTree(line)));
        }
    }

    static ObjectNode answer(JsonNode group) {
        Map<ProcessId, KafkaStreamsState> states = new TreeMap<>();
        Map<ProcessId, KafkaStreamsAssignment> assignments = new TreeMap<>();
        for (JsonNode client : group.get("clients")) {
            ProcessId id = new ProcessId(new UUID(0, states.size()));
            states.put(id, new Client(id, client.get("rack").asText()));
            Set<AssignedTask> assigned = new HashSet<>();
            client.get("active").forEach(task -> assigned.add(
                new AssignedTask(TaskId.parse(task.asText()), AssignedTask.Type.ACTIVE)));
            client.get("standby").forEach(task -> assigned.add(
                new AssignedTask(TaskId.parse(task.asText()), AssignedTask.Type.STANDBY)));
            assignments.put(id, KafkaStreamsAssignment.of(id, assigned));
        }
        AssignmentConfigs configs = new AssignmentConfigs(
            10_000L, 2, 1, 600_000L, List.of(), OptionalInt.of(group.get("traffic").asInt()),
            OptionalInt.of(group.get("overlap").asInt()), group.get("strategy").asText());
        // This function would count changelogs too, which the assignor of Kafka Streams does not.
        TaskAssignmentUtils.optimizeRackAwareActiveTasks(
            RackAwareOptimizationParams.of(new State(tasks(group, "sources", false), states, configs)),
            assignments);
        TaskAssignmentUtils.optimizeRackAwareStandbyTasks(
            RackAwareOptimizationParams.of(new State(tasks(group, "changelogs", true), states, configs)),
            assignments);
        ObjectNode answer = JSON.createObjectNode();
        for (KafkaStreamsAssignment each : assignments.values()) {
            ObjectNode client = answer.withArray("clients").addObject();
            client.putArray("active");
            client.putArray("standby");
            each.tasks().values().forEach(task -> client.withArray(
                task.type() == AssignedTask.Type.ACTIVE ? "active" : "standby").add(task.id().toString()));
        }
        return answer;
    }

    static Map<TaskId, TaskInfo> tasks(JsonNode group, String kind, boolean isChangelog) {
        Map<TaskId, TaskInfo> tasks = new TreeMap<>();
        group.get("tasks").fields().forEachRemaining(task -> {
            TaskId id = TaskId.parse(task.getKey());
            JsonNode racks = task.getValue().get(kind);
            Set<TaskTopicPartition> partitions = new HashSet<>();
            for (int number = 0; number < racks.size(); number++) {
                Set<String> names = new TreeSet<>();
                racks.get(number).forEach(rack -> names.add(rack.asText()));
                TopicPartition partition = new TopicPartition(
                    kind + "-" + id.subtopology() + "-" + number, id.partition());
                partitions.add(new Partition(partition, isChangelog, names));
            }
            tasks.put(id, new Info(id, partitions));
        });
        return tasks;
    }

    record Partition(TopicPartition topicPartition, boolean isChangelog, Set<String> racks)
            implements TaskTopicPartition {
        public boolean isSource() {
            return !isChangelog;
        }

        public Optional<Set<String>> rackIds() {
            return Optional.of(racks);
        }
    }

    record Info(TaskId id, Set<TaskTopicPartition> topicPartitions) implements TaskInfo {
        public boolean isStateful() {
            return true;
        }

        public Set<String> stateStoreNames() {
            return Set.of("store");
        }
    }

    record State(
            Map<TaskId, TaskInfo> allTasks, Map<ProcessId, KafkaStreamsState> states,
            AssignmentConfigs assignmentConfigs) implements ApplicationState {
        public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
            return states;
        }
    }

    record Client(ProcessId processId, String rack) implements KafkaStreamsState {
        public int numProcessingThreads() {
            return 1;
        }

        public SortedSet<String> consumerClientIds() {
            return new TreeSet<>(Set.of("consumer"));
        }

        public SortedSet<TaskId> previousActiveTasks() {
            return new TreeSet<>();
        }

        public SortedSet<TaskId> previousStandbyTasks() {
            return new TreeSet<>();
        }

        public long lagFor(TaskId task) {
            return 0;
        }

        public SortedSet<TaskId> prevTasksByLag(String consumer) {
            return new TreeSet<>();
        }

        public Map<TaskId, Long> statefulTasksToLagSums() {
            return new HashMap<>();
        }

        public Optional<HostInfo> hostInfo() {
            return Optional.empty();
        }

        public Map<String, String> clientTags() {
            return Map.of();
        }

        public Optional<String> rackId() {
            return Optional.of(rack);
        }
    }
}
