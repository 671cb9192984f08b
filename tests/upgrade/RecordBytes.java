import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * The bytes that Kafka's own serializer makes of records of __consumer_offsets.
 *
 * A line of standard input is a JSON object: type, version, key, and value (null: a tombstone), with
 * the fields of Kafka's schemas in that version of the value; bytes are base64. The answer is a line:
 * key and value in hex, with a tab between them.
 */
public class RecordBytes {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        HexFormat hex = HexFormat.of();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode wanted = mapper.readTree(line);
            short type = (short) wanted.get("type").asInt();
            short version = (short) wanted.get("version").asInt();
            ApiMessage key =
                CoordinatorRecordJsonConverters.readRecordKeyFromJson(wanted.get("key"), type);
            CoordinatorRecord record = wanted.get("value").isNull()
                ? CoordinatorRecord.tombstone(key)
                : CoordinatorRecord.record(key, new ApiMessageAndVersion(
                    CoordinatorRecordJsonConverters.readRecordValueFromJson(
                        wanted.get("value"), type, version), version));
            byte[] value = serde.serializeValue(record);
            System.out.println(
                hex.formatHex(serde.serializeKey(record)) + "\t"
                    + (value == null ? "" : hex.formatHex(value)));
        }
    }
}
