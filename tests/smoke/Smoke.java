import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.tests.SmokeTestDriver;
import org.apache.kafka.streams.tests.SmokeTestUtil;

/**
 * Has the driver of Kafka's StreamsSmokeTest write input and verify every output of the application.
 *
 * <p>Arguments: the broker, the number of keys, of records for each key, and the seconds to write
 * for. It prints "generated" when all input is written, and "verified" or "refuted" at the end.
 */
public final class Smoke {
  private Smoke() {}

  public static void main(String[] arguments) {
    String servers = arguments[0];
    int keys = Integer.parseInt(arguments[1]);
    int recordsPerKey = Integer.parseInt(arguments[2]);
    Duration duration = Duration.ofSeconds(Long.parseLong(arguments[3]));
    Map<String, Set<Integer>> written =
        SmokeTestDriver.generate(servers, keys, recordsPerKey, duration);
    System.out.println("generated");
    SmokeTestUtil.VerificationResult result =
        SmokeTestDriver.verify(servers, written, recordsPerKey, true);
    System.out.println(result.passed() ? "verified" : "refuted\n" + result.result());
  }
}
