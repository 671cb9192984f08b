import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;

/**
 * Runs cases in Kafka Streams: one line of JSON in, one line out, until the input ends.
 *
 * <p>A case is a description of a topology and what is piped into it. The answer has every record of
 * every topic and the contents of every named store, or what went wrong. With `live` a topology is
 * started on a broker, or stopped.
 */
public final class Peer {
    private Peer() {}

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        System.setOut(System.err);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.write(JSON.writeValueAsBytes(answer(line)));
            answers.write('\n');
            answers.flush();
        }
    }

    private static JsonNode answer(String line) {
        try {
            JsonNode asked = JSON.readTree(line);
            return asked.has("live") ? Live.answer(asked) : InDriver.run(asked);
        } catch (Exception | LinkageError | StackOverflowError failed) {
            StringWriter stack = new StringWriter();
            failed.printStackTrace(new PrintWriter(stack));
            ObjectNode refused = JsonNodeFactory.instance.objectNode();
            refused.put("error", String.valueOf(failed.getMessage()));
            refused.put("stack", stack.toString());
            return refused;
        }
    }

    static String hex(byte[] bytes) {
        return bytes == null ? null : java.util.HexFormat.of().formatHex(bytes);
    }

    static Object plain(JsonNode value) {
        return value.isNull() ? null : value.isNumber() ? (Object) value.asLong() : value.asText();
    }

    static void add(ArrayNode row, Object value) {
        if (value == null) {
            row.addNull();
        } else if (value instanceof Long number) {
            row.add(number);
        } else {
            row.add(value.toString());
        }
    }
}
