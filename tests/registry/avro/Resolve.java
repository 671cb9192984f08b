import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** Avro's own resolution of schemas: a line with both schemas and bytes in, the reader's bytes out. */
final class Resolve {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, String> answer = new LinkedHashMap<>();
            try {
                answer.put("data", resolved(JSON.readTree(line)));
            } catch (Exception error) {
                answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            System.out.write(JSON.writeValueAsBytes(answer));
            System.out.write('\n');
        }
        System.out.flush();
    }

    private static String resolved(JsonNode asked) throws Exception {
        Schema writer = new Schema.Parser().parse(asked.get("writer").toString());
        Schema reader = new Schema.Parser().parse(asked.get("reader").toString());
        byte[] data = HEX.parseHex(asked.get("data").asText());
        Object found = new GenericDatumReader<>(writer, reader)
            .read(null, DecoderFactory.get().binaryDecoder(data, null));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<>(reader).write(found, encoder);
        encoder.flush();
        return HEX.formatHex(out.toByteArray());
    }
}
