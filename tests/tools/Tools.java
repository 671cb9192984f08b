import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command-line tools one after another in one JVM, for each JVM takes seconds to start.
 *
 * A line of standard input is a command: the class and its arguments, with tabs between them. The
 * answer is a line with the exit status and a number of bytes, then as many bytes: all that the tool
 * printed, on standard output and error alike. A tool that would end the process ends here only; one
 * that catches that and says so is not listened to any more.
 */
public class Tools {
    /** What is thrown to end a tool. */
    static class Ended extends RuntimeException {
    }

    /** The status with which the tool that runs has ended first; null if it has not. */
    static Integer ended;

    /** Scala's console keeps the first System.out that it sees: so there is one, with a target. */
    static class Switched extends OutputStream {
        OutputStream target;

        @Override
        public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int count) {
            try {
                target.write(bytes, from, count);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Switched printed = new Switched();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(System.out);
        Exit.setExitProcedure((status, message) -> {
            if (ended == null) {
                ended = status;
                System.out.flush();
                printed.target = OutputStream.nullOutputStream();
            }
            throw new Ended();
        });
        BufferedReader commands =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            printed.target = output;
            ended = null;
            String[] words = line.split("\t");
            int status = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            answers.println(status + " " + output.size());
            answers.write(output.toByteArray());
            answers.flush();
        }
    }

    static int run(String tool, String[] arguments) throws Exception {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (ended == null) {
                System.out.println(error.getCause());
                return 1;
            }
        }
        return ended == null ? 0 : ended;
    }
}
