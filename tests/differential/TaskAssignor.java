import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/**
 * Runs the assignor of Kafka Streams.
 *
 * A line of standard input is a group: {"stateful": [task, ...], "stateless": [task, ...], "standbys",
 * "warmups", "lag", "tags": [name, ...], "clients": [{"name", "threads", "lags": {task: records},
 * "tags": {name: value}, "active": [task, ...], "standby": [task, ...]}]}. Clients are numbered by
 * their place. The answer is a line: {"probing", "clients": [{"active": [task, ...], "standby": [task,
 * ...]}]}, where warm-ups are among the standbys.
 */
public class TaskAssignor {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] none) throws Exception {
        BufferedReader groups =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = groups.readLine(); line != null; line = groups.readLine()) {
            System.out.println(answer(JSON.readTree(line)));
        }
    }

    static ObjectNode answer(JsonNode group) {
        Set<TaskId> stateful = tasks(group.get("stateful"));
        Set<TaskId> all = tasks(group.get("stateless"));
        all.addAll(stateful);
        List<String> tags = new ArrayList<>();
        group.get("tags").forEach(tag -> tags.add(tag.asText()));
        AssignmentConfigs configs = new AssignmentConfigs(
            group.get("lag").asLong(), group.get("warmups").asInt(), group.get("standbys").asInt(),
            600_000L, tags);
        Map<ProcessId, ClientState> clients = new TreeMap<>();
        for (JsonNode client : group.get("clients")) {
            ProcessId id = new ProcessId(new UUID(0, clients.size()));
            Map<TaskId, Long> lags = new HashMap<>();
            client.get("lags").fields().forEachRemaining(
                lag -> lags.put(TaskId.parse(lag.getKey()), lag.getValue().asLong()));
            Map<String, String> clientTags = new HashMap<>();
            client.get("tags").fields().forEachRemaining(
                tag -> clientTags.put(tag.getKey(), tag.getValue().asText()));
            clients.put(id, new ClientState(
                tasks(client.get("active")), tasks(client.get("standby")), lags, clientTags,
                client.get("threads").asInt(), id));
        }
        RackAwareTaskAssignor racks = new RackAwareTaskAssignor(
            Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(), null, configs, Time.SYSTEM);
        ObjectNode answer = JSON.createObjectNode();
        answer.put("probing",
            new HighAvailabilityTaskAssignor().assign(clients, all, stateful, racks, configs));
        for (ClientState client : clients.values()) {
            ObjectNode assigned = answer.withArray("clients").addObject();
            client.activeTasks().forEach(task -> assigned.withArray("active").add(task.toString()));
            client.standbyTasks().forEach(task -> assigned.withArray("standby").add(task.toString()));
        }
        return answer;
    }

    static Set<TaskId> tasks(JsonNode names) {
        Set<TaskId> tasks = new TreeSet<>();
        names.forEach(name -> tasks.add(TaskId.parse(name.asText())));
        return tasks;
    }
}
