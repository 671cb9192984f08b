import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints code, name and whether it is retriable of each of Kafka's errors, a line each. */
public final class ListErrors {
    public static void main(String[] arguments) {
        for (Errors each : Errors.values()) {
            boolean retriable = each.exception() instanceof RetriableException;
            System.out.println(each.code() + " " + each.name() + " " + retriable);
        }
    }
}
