import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.TextFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;

/**
 * Reads messages as a class of Protobuf does: a line has the reader's FileDescriptorProto and a
 * message of its first type, both in base64. The answer is the message as text, a tab, and what
 * is written for it again.
 */
class Protobuf {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ", -1);
      FileDescriptorProto proto = FileDescriptorProto.parseFrom(Base64.getDecoder().decode(parts[0]));
      FileDescriptor file = FileDescriptor.buildFrom(proto, new FileDescriptor[0]);
      DynamicMessage message =
          DynamicMessage.parseFrom(
              file.getMessageTypes().get(0), Base64.getDecoder().decode(parts[1]));
      String text = TextFormat.printer().emittingSingleLine(true).printToString(message);
      String again = Base64.getEncoder().encodeToString(message.toByteArray());
      System.out.println(text.trim() + "\t" + again);
    }
  }
}
