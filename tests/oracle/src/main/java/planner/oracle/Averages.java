package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.TreeSet;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;

/** Averages, load reports and usages. */
final class Averages {
    private Averages() {}

    static ObjectNode brokerTimeAverage(ServiceConfiguration config, JsonNode input) {
        Map<String, BundleData> bundles = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : input.get("bundleData").properties()) {
            bundles.put(one.getKey(), Loads.bundle(one.getValue()));
        }
        return Oracle.JSON.valueToTree(new TimeAverageBrokerData(new HashSet<>(Config.texts(input.get("bundles"))),
                bundles, Loads.stats(input.get("defaultStats"))));
    }

    static ObjectNode resourceUsage(ServiceConfiguration config, JsonNode input) throws ReflectiveOperationException {
        ObjectNode answer = Oracle.JSON.createObjectNode();
        LocalBrokerData broker = new LocalBrokerData();
        Map<String, NamespaceBundleStats> stats = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : input.path("lastStats").properties()) {
            stats.put(one.getKey(), Loads.stats(one.getValue()));
        }
        broker.setBundles(new HashSet<>(Config.texts(input.path("bundles"))));
        broker.update(Loads.system(input), stats);
        answer.putObject("percentUsage")
                .put("cpu", (double) broker.getCpu().percentUsage())
                .put("memory", (double) broker.getMemory().percentUsage())
                .put("directMemory", (double) broker.getDirectMemory().percentUsage())
                .put("bandwidthIn", (double) broker.getBandwidthIn().percentUsage())
                .put("bandwidthOut", (double) broker.getBandwidthOut().percentUsage());
        double weightIn = Config.bandwidthWeight(config, "In");
        double weightOut = Config.bandwidthWeight(config, "Out");
        answer.put("maxResourceUsage", broker.getMaxResourceUsage());
        answer.put("maxResourceUsageWithWeight", broker.getMaxResourceUsageWithWeight(
                config.getLoadBalancerCPUResourceWeight(), config.getLoadBalancerDirectMemoryResourceWeight(),
                weightIn, weightOut));
        answer.put("effectiveBandwidthInWeight", weightIn);
        answer.put("effectiveBandwidthOutWeight", weightOut);
        if (input.has("lastStats")) {
            answer.putObject("totals")
                    .put("msgRateIn", broker.getMsgRateIn())
                    .put("msgRateOut", broker.getMsgRateOut())
                    .put("msgThroughputIn", broker.getMsgThroughputIn())
                    .put("msgThroughputOut", broker.getMsgThroughputOut())
                    .put("numTopics", broker.getNumTopics())
                    .put("numBundles", broker.getNumBundles())
                    .put("numConsumers", broker.getNumConsumers())
                    .put("numProducers", broker.getNumProducers());
            answer.set("bundlesSorted", Oracle.JSON.valueToTree(new TreeSet<>(broker.getBundles())));
            answer.set("lastBundleGainsSorted", Oracle.JSON.valueToTree(new TreeSet<>(broker.getLastBundleGains())));
            answer.set("lastBundleLossesSorted", Oracle.JSON.valueToTree(new TreeSet<>(broker.getLastBundleLosses())));
        }
        return answer;
    }

    static ObjectNode brokerLoadData(ServiceConfiguration config, JsonNode input) {
        ObjectNode answer = Oracle.JSON.createObjectNode();
        ArrayNode updates = answer.putArray("updates");
        BrokerLoadData load = new BrokerLoadData();
        for (JsonNode report : input.get("updates")) {
            if (report.path("clear").asBoolean()) {
                load.clear();
            } else {
                Loads.update(load, report, config);
            }
            updates.addObject()
                    .put("maxResourceUsage", load.getMaxResourceUsage())
                    .put("weightedMaxEMA", load.getWeightedMaxEMA())
                    .put("msgThroughputEMA", load.getMsgThroughputEMA());
        }
        return answer;
    }
}
