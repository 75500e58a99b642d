package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.common.util.ObjectMapperFactory;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;

/** Load data of vectors, read as Pulsar reads its own from the metadata store. */
final class Loads {
    /** Fields of a vector's broker that belong to {@code BrokerData} around its report. */
    private static final List<String> AROUND_REPORT = List.of("timeAverageData", "preallocatedBundles");

    private static final ObjectMapper PULSAR_JSON = ObjectMapperFactory.getMapper().getObjectMapper();

    private Loads() {}

    /** What the modular leader knows; its maps are those of a real leader, in their own order. */
    static LoadData modular(JsonNode given) {
        LoadData data = new LoadData();
        for (Map.Entry<String, JsonNode> one : given.path("bundleData").properties()) {
            data.getBundleData().put(one.getKey(), PULSAR_JSON.convertValue(one.getValue(), BundleData.class));
        }
        for (Map.Entry<String, JsonNode> one : given.path("brokers").properties()) {
            data.getBrokerData().put(one.getKey(), broker(one.getValue(), data.getBundleData()));
        }
        for (JsonNode bundle : given.path("recentlyUnloadedBundles")) {
            data.getRecentlyUnloadedBundles().put(bundle.asText(), 0L);
        }
        return data;
    }

    private static BrokerData broker(JsonNode given, Map<String, BundleData> bundles) {
        BrokerData broker = new BrokerData(report(given));
        TimeAverageBrokerData averages = given.has("timeAverageData")
                ? PULSAR_JSON.convertValue(given.get("timeAverageData"), TimeAverageBrokerData.class)
                : new TimeAverageBrokerData();
        broker.setTimeAverageData(averages);
        Map<String, BundleData> preallocated = new HashMap<>();
        for (String bundle : Config.texts(given.path("preallocatedBundles"))) {
            preallocated.put(bundle, bundles.getOrDefault(bundle, new BundleData()));
        }
        broker.setPreallocatedBundleData(preallocated);
        return broker;
    }

    static LocalBrokerData report(JsonNode given) {
        ObjectNode copy = given.deepCopy();
        LocalBrokerData report = PULSAR_JSON.convertValue(copy.remove(AROUND_REPORT), LocalBrokerData.class);
        report.setLastStats(asWritten(report.getLastStats()));
        return report;
    }

    /** Returns a report's bundles in the order in which the leader reads them, which is that of the broker's own map. */
    private static Map<String, NamespaceBundleStats> asWritten(Map<String, NamespaceBundleStats> given) {
        Map<String, NamespaceBundleStats> ofBroker = new ConcurrentHashMap<>();
        given.forEach(ofBroker::put);
        return new LinkedHashMap<>(ofBroker);
    }

    static BundleData bundle(JsonNode given) {
        return PULSAR_JSON.convertValue(given, BundleData.class);
    }

    static NamespaceBundleStats stats(JsonNode given) {
        return PULSAR_JSON.convertValue(given, NamespaceBundleStats.class);
    }

    static SystemResourceUsage system(JsonNode given) {
        SystemResourceUsage system = new SystemResourceUsage();
        system.setCpu(usage(given.path("cpu")));
        system.setMemory(usage(given.path("memory")));
        system.setDirectMemory(usage(given.path("directMemory")));
        system.setBandwidthIn(usage(given.path("bandwidthIn")));
        system.setBandwidthOut(usage(given.path("bandwidthOut")));
        return system;
    }

    private static ResourceUsage usage(JsonNode given) {
        return new ResourceUsage(given.path("usage").asDouble(), given.path("limit").asDouble());
    }

    /** Applies a raw report to what the extensible load manager keeps of a broker. */
    static void update(BrokerLoadData load, JsonNode given, ServiceConfiguration config) {
        load.update(system(given), given.path("msgThroughputIn").asDouble(), given.path("msgThroughputOut").asDouble(),
                given.path("msgRateIn").asDouble(), given.path("msgRateOut").asDouble(),
                given.path("bundleCount").asInt(1), given.path("topics").asInt(1), config);
    }
}
