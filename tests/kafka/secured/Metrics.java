import com.sun.tools.attach.VirtualMachine;
import java.util.Set;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Prints the sum of one attribute of socket-server-metrics over the network threads of a listener. */
public class Metrics {
    public static void main(String[] arguments) throws Exception {
        String pid = arguments[0];
        String listener = arguments[1];
        String attribute = arguments[2];
        VirtualMachine machine = VirtualMachine.attach(pid);
        String address = machine.startLocalManagementAgent();
        machine.detach();
        double total = 0;
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection beans = connector.getMBeanServerConnection();
            String pattern = "kafka.server:type=socket-server-metrics,listener=%s,networkProcessor=*";
            Set<ObjectName> threads =
                    beans.queryNames(new ObjectName(String.format(pattern, listener)), null);
            if (threads.isEmpty()) {
                throw new IllegalArgumentException("no listener " + listener + " at " + pid);
            }
            for (ObjectName thread : threads) {
                total += (Double) beans.getAttribute(thread, attribute);
            }
        }
        System.out.println((long) total);
    }
}
