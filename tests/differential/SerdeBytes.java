import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.kstream.SessionWindowedDeserializer;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.Change;
import org.apache.kafka.streams.kstream.internals.ChangedDeserializer;
import org.apache.kafka.streams.kstream.internals.ChangedSerializer;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/** Kafka Streams' own serialisers of windowed keys and changes: a line of JSON in, a line out. */
final class SerdeBytes {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final String TOPIC = "t";
    private static final StringSerializer WRITE = new StringSerializer();
    private static final StringDeserializer READ = new StringDeserializer();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Object answer = answer(JSON.readTree(line));
            System.out.write(JSON.writeValueAsBytes(answer));
            System.out.write('\n');
        }
        System.out.flush();
    }

    private static Object answer(JsonNode asked) {
        String what = asked.get("ask").asText();
        if (what.startsWith("read")) {
            return read(what, HEX.parseHex(asked.get("data").asText()), asked);
        }
        return HEX.formatHex(written(what, asked));
    }

    private static byte[] written(String what, JsonNode asked) {
        if (what.equals("write change")) {
            Change<String> change = new Change<>(text(asked.get("new")), text(asked.get("old")));
            return new ChangedSerializer<>(WRITE).serialize(TOPIC, new RecordHeaders(), change);
        }
        String key = asked.get("key").asText();
        long start = asked.get("start").asLong();
        long end = asked.get("end").asLong();
        return what.equals("write session")
            ? new SessionWindowedSerializer<>(WRITE).serialize(TOPIC, new Windowed<>(key, new SessionWindow(start, end)))
            : new TimeWindowedSerializer<>(WRITE).serialize(TOPIC, new Windowed<>(key, new TimeWindow(start, end)));
    }

    private static Object read(String what, byte[] data, JsonNode asked) {
        if (what.equals("read change")) {
            Change<String> change = new ChangedDeserializer<>(READ).deserialize(TOPIC, new RecordHeaders(), data);
            return Arrays.asList(change.newValue, change.oldValue, change.isLatest);
        }
        Windowed<String> found = what.equals("read session")
            ? new SessionWindowedDeserializer<>(READ).deserialize(TOPIC, data)
            : new TimeWindowedDeserializer<>(READ, asked.get("size").asLong()).deserialize(TOPIC, data);
        return Arrays.asList(found.key(), found.window().start(), found.window().end());
    }

    private static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }
}
