import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The types that a description may name: `string`, `int64`, `windowed:<size in ms>`, `session`. */
final class Types {
    private Types() {}

    @SuppressWarnings("unchecked")
    static Serde<Object> serde(String type) {
        Serde<?> serde;
        if (type.startsWith("windowed:")) {
            long size = Long.parseLong(type.substring("windowed:".length()));
            serde = WindowedSerdes.timeWindowedSerdeFrom(String.class, size);
        } else {
            serde = switch (type) {
                case "string" -> Serdes.String();
                case "int64" -> Serdes.Long();
                case "session" -> WindowedSerdes.sessionWindowedSerdeFrom(String.class);
                default -> throw new IllegalArgumentException("no such type: " + type);
            };
        }
        return (Serde<Object>) serde;
    }

    static byte[] bytes(String type, Object value) {
        return value == null ? null : serde(type).serializer().serialize("", value);
    }
}
