import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Runs all scenarios with the Java client against one broker: {@code java Scenarios HOST:PORT}
 *
 * <p>Prints a line for each: its name, a tab, and {@code passed} or the lines of its error with a tab
 * between them. A scenario has topics, groups and ids of its own, so the order doesn't matter.
 */
public final class Scenarios {
    interface Scenario {
        void run(Cluster cluster) throws Exception;
    }

    static Map<String, Scenario> all() {
        Map<String, Scenario> found = new LinkedHashMap<>();
        Transactions.addTo(found);
        Reading.addTo(found);
        Administration.addTo(found);
        return found;
    }

    public static void main(String[] arguments) {
        all().forEach((name, scenario) -> {
            System.out.println(name + "\t" + outcome(scenario, arguments[0], name));
            System.out.flush();
        });
    }

    private static String outcome(Scenario scenario, String servers, String name) {
        try (Cluster cluster = new Cluster(servers, name)) {
            scenario.run(cluster);
            return "passed";
        } catch (Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            return text.toString().replace('\t', ' ').replace('\n', '\t');
        }
    }
}
