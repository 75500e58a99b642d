import java.io.OutputStream;
import org.apache.pulsar.PulsarClusterMetadataSetup;
import org.apache.pulsar.zookeeper.LocalBookkeeperEnsemble;

/**
 * One ZooKeeper and one bookie for the brokers of a test.
 *
 * <p>Arguments: ZooKeeper port, bookie port, data directory, cluster name, web service URL, broker service URL.
 *
 * <p>Prints "ready". Ends with standard input, so that it never outlives the test.
 */
public final class LocalStore {
  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    String directory = args[2];
    LocalBookkeeperEnsemble ensemble =
        new LocalBookkeeperEnsemble(
            1, port, Integer.parseInt(args[1]), directory + "/zookeeper", directory + "/bookie", true, "127.0.0.1");
    ensemble.start(false);
    String store = "zk:127.0.0.1:" + port;
    PulsarClusterMetadataSetup.main(
        new String[] {
          "--cluster", args[3],
          "--metadata-store", store,
          "--configuration-metadata-store", store,
          "--web-service-url", args[4],
          "--broker-service-url", args[5],
        });
    System.out.println("ready");
    System.in.transferTo(OutputStream.nullOutputStream());
    Runtime.getRuntime().halt(0);
  }
}
