package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.Multimap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.commons.lang3.mutable.MutableInt;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.OverloadShedder;
import org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder;
import org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder;

/** Shedding strategies of the modular load manager; one strategy object lives through the steps. */
final class ModularShedders {
    private static final Map<String, Supplier<LoadSheddingStrategy>> STRATEGIES = Map.of(
            "shedder_overload", OverloadShedder::new,
            "shedder_threshold", ThresholdShedder::new,
            "shedder_uniform", UniformLoadShedder::new,
            "shedder_avg", AvgShedder::new);

    private ModularShedders() {}

    /** Makes the strategy that a kind of vectors is about. */
    static LoadSheddingStrategy strategy(String kind) {
        return STRATEGIES.get(kind).get();
    }

    static ObjectNode overload(ServiceConfiguration config, JsonNode input) throws Exception {
        return answer("shedder_overload", config, input);
    }

    static ObjectNode threshold(ServiceConfiguration config, JsonNode input) throws Exception {
        return answer("shedder_threshold", config, input);
    }

    static ObjectNode uniform(ServiceConfiguration config, JsonNode input) throws Exception {
        return answer("shedder_uniform", config, input);
    }

    static ObjectNode avg(ServiceConfiguration config, JsonNode input) throws Exception {
        return answer("shedder_avg", config, input);
    }

    private static ObjectNode answer(String kind, ServiceConfiguration config, JsonNode input) throws Exception {
        LoadSheddingStrategy shedder = strategy(kind);
        ObjectNode answer = Oracle.JSON.createObjectNode();
        ArrayNode steps = answer.putArray("steps");
        Set<String> before = null;
        for (JsonNode step : input.get("steps")) {
            LoadData data = Loads.modular(step.get("loadData"));
            Set<String> brokers = new HashSet<>(data.getBrokerData().keySet());
            if (before != null && !before.equals(brokers)) {
                shedder.onActiveBrokersChange(brokers);
            }
            before = brokers;
            Multimap<String, String> found = shedder.findBundlesForUnloading(data, config);
            ObjectNode told = steps.addObject();
            ObjectNode unload = told.putObject("unload");
            found.asMap().forEach((broker, bundles) -> bundles.forEach(unload.withArray(broker)::add));
            if (shedder instanceof ThresholdShedder) {
                told.set("brokerAvgResourceUsage", Oracle.JSON.valueToTree(Fields.get(shedder, "brokerAvgResourceUsage")));
            }
            if (shedder instanceof AvgShedder avg) {
                remembered(avg, data, config, found, told);
            }
        }
        return answer;
    }

    private static void remembered(AvgShedder shedder, LoadData data, ServiceConfiguration config,
            Multimap<String, String> found, ObjectNode told) throws ReflectiveOperationException {
        told.set("scores", Oracle.JSON.valueToTree(Fields.get(shedder, "brokerScoreMap")));
        told.set("hitCountHigh", counts(Fields.get(shedder, "brokerHitCountForHigh")));
        told.set("hitCountLow", counts(Fields.get(shedder, "brokerHitCountForLow")));
        ObjectNode placements = told.putObject("placements");
        for (String bundle : found.values()) {
            placements.put(bundle, shedder.selectBroker(data.getBrokerData().keySet(),
                    data.getBundleData().get(bundle), data, config).orElse(null));
        }
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode counts(Object counters) {
        ObjectNode counts = Oracle.JSON.createObjectNode();
        ((Map<String, MutableInt>) counters).forEach((broker, count) -> {
            if (count.intValue() != 0) {
                counts.put(broker, count.intValue());
            }
        });
        return counts;
    }
}
