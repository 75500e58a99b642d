import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;

import io.netty.util.internal.PlatformDependent;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LeaderElectionService;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.UnloadScheduler;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.common.configuration.PulsarConfigurationLoader;
import org.apache.pulsar.common.util.ObjectMapperFactory;

/**
 * A broker whose leader decides more often than once a minute, which is the least that its settings allow.
 *
 * <p>Arguments: broker.conf, time from one cycle to the next in ms, a file with the direct memory in MiB to be in use
 * besides what the broker itself needs.
 *
 * <p>Pulsar's own task is taken off its clock, and what it calls is called here in the same rhythm: one interval after
 * the election for the first time, then an interval after the end of a cycle (modular load manager) or after its begin
 * (extensible). What is decided, and from what, is Pulsar's own doing, and what the leader knew then goes into
 * inputs.jsonl beside that file.
 */
public final class QuickBroker {
  private static final long TICK_MS = 20;
  private static final int MIB = 1 << 20;
  private static final Deque<ByteBuffer> BALLAST = new ArrayDeque<>();

  public static void main(String[] args) throws Exception {
    ServiceConfiguration conf = PulsarConfigurationLoader.create(args[0], ServiceConfiguration.class);
    long intervalMs = Long.parseLong(args[1]);
    PulsarService pulsar =
        new PulsarService(conf, Optional.empty(), status -> Runtime.getRuntime().halt(status));
    Thread clock = new Thread(() -> keepTime(pulsar, conf, intervalMs, Path.of(args[2])), "quick-clock");
    clock.setDaemon(true);
    clock.start(); // before the broker, which may be elected while it starts
    pulsar.start();
    clock.join();
  }

  private static void keepTime(PulsarService pulsar, ServiceConfiguration conf, long intervalMs, Path ballast) {
    boolean extensible = conf.getLoadManagerClassName().contains("Extensible");
    Path inputs = ballast.resolveSibling("inputs.jsonl");
    long dueMs = 0;
    while (true) {
      try {
        Thread.sleep(TICK_MS);
        carry(ballast);
        if (!leads(pulsar, extensible)) {
          dueMs = 0;
          continue;
        }
        long nowMs = System.currentTimeMillis();
        if (dueMs == 0) {
          System.err.println(nowMs + " ELECTED");
          dueMs = nowMs + intervalMs;
        }
        stopClock(pulsar, extensible);
        if (nowMs >= dueMs) {
          System.err.println(nowMs + " CYCLE");
          Files.writeString(inputs, known(pulsar, extensible, nowMs) + "\n", CREATE, APPEND);
          decide(pulsar, extensible);
          long endMs = System.currentTimeMillis();
          System.err.println(endMs + " DECIDED");
          dueMs = (extensible ? Math.max(dueMs, endMs - intervalMs) : endMs) + intervalMs;
        }
      } catch (Exception error) {
        error.printStackTrace();
      }
    }
  }

  private static boolean leads(PulsarService pulsar, boolean extensible) {
    LoadManager manager = pulsar.getLoadManager().get();
    if (manager == null || !manager.started()) {
      return false;
    }
    if (extensible) {
      return ExtensibleLoadManagerImpl.get(manager).getRole() == ExtensibleLoadManagerImpl.Role.Leader;
    }
    LeaderElectionService election = pulsar.getLeaderElectionService();
    return election != null && election.isLeader();
  }

  private static void stopClock(PulsarService pulsar, boolean extensible) throws Exception {
    if (!extensible) {
      if (pulsar.getLoadSheddingTask() != null) {
        pulsar.getLoadSheddingTask().cancel();
      }
    } else if (field(scheduler(pulsar), "task") instanceof ScheduledFuture<?> task) {
      task.cancel(false);
    }
  }

  private static void decide(PulsarService pulsar, boolean extensible) throws Exception {
    if (extensible) {
      scheduler(pulsar).execute();
    } else {
      pulsar.getLoadManager().get().doLoadShedding();
    }
  }

  /** Returns what the leader knows at the moment that it decides, as a line of JSON. */
  private static String known(PulsarService pulsar, boolean extensible, long nowMs) throws Exception {
    Map<String, Object> known = new LinkedHashMap<>();
    known.put("at_ms", nowMs);
    if (extensible) {
      UnloadScheduler scheduler = scheduler(pulsar);
      LoadManagerContext context = (LoadManagerContext) field(scheduler, "context");
      known.put("loads", entries(context.brokerLoadDataStore()));
      known.put("top_bundles", entries(context.topBundleLoadDataStore()));
      known.put("active", context.brokerRegistry().getAvailableBrokersAsync().get());
      known.put("unloaded_bundles", field(scheduler, "recentlyUnloadedBundles"));
      known.put("unloaded_brokers", field(scheduler, "recentlyUnloadedBrokers"));
      known.put("hits", field(field(scheduler, "namespaceUnloadStrategy"), "unloadConditionHitCount"));
    } else {
      Object manager = field(pulsar.getLoadManager().get(), "loadManager");
      LoadData data = (LoadData) field(manager, "loadData");
      known.put("brokers", data.getBrokerData());
      known.put("bundles", data.getBundleData());
      known.put("unloaded_bundles", data.getRecentlyUnloadedBundles());
    }
    return ObjectMapperFactory.getMapper().writer().writeValueAsString(known);
  }

  private static Map<String, Object> entries(LoadDataStore<?> store) {
    Map<String, Object> found = new LinkedHashMap<>();
    store.forEach(found::put);
    return found;
  }

  private static UnloadScheduler scheduler(PulsarService pulsar) throws Exception {
    return (UnloadScheduler)
        field(ExtensibleLoadManagerImpl.get(pulsar.getLoadManager().get()), "unloadScheduler");
  }

  private static Object field(Object of, String name) throws Exception {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  private static void carry(Path wanted) throws Exception {
    String text = Files.exists(wanted) ? Files.readString(wanted).strip() : "";
    int mib = text.isEmpty() ? BALLAST.size() : Integer.parseInt(text);
    while (BALLAST.size() < mib) {
      BALLAST.push(PlatformDependent.allocateDirectNoCleaner(MIB));
    }
    while (BALLAST.size() > mib) {
      PlatformDependent.freeDirectNoCleaner(BALLAST.pop());
    }
  }
}
