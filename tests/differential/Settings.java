import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.streams.StreamsConfig;

/** Prints the names of Kafka Streams' settings, or the properties that Java reads of texts in hex. */
public class Settings {
    public static void main(final String[] texts) throws Exception {
        if (texts.length == 0) {
            new TreeSet<>(StreamsConfig.configDef().names()).forEach(System.out::println);
            return;
        }
        for (final String text : texts) {
            final Properties properties = new Properties();
            properties.load(new StringReader(
                new String(HexFormat.of().parseHex(text), StandardCharsets.UTF_8)));
            final StringBuilder line = new StringBuilder();
            for (final String name : new TreeSet<>(properties.stringPropertyNames())) {
                line.append(hex(name)).append('=').append(hex(properties.getProperty(name)));
                line.append(' ');
            }
            System.out.println(line.toString().strip());
        }
    }

    private static String hex(final String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
