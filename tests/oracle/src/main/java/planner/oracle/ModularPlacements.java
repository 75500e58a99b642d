package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate;
import org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;

/** Placement strategies of the modular load manager. */
final class ModularPlacements {
    private static final int DRAWS_PER_CANDIDATE = 60;
    private static final Map<String, Supplier<ModularLoadManagerStrategy>> STRATEGIES = Map.of(
            "LeastLongTermMessageRate", LeastLongTermMessageRate::new,
            "LeastResourceUsageWithWeight", LeastResourceUsageWithWeight::new,
            "RoundRobinBrokerSelector", RoundRobinBrokerSelector::new,
            "AvgShedder", AvgShedder::new);

    private ModularPlacements() {}

    static boolean knows(String strategy) {
        return STRATEGIES.containsKey(strategy);
    }

    static ModularLoadManagerStrategy strategy(String className) {
        return STRATEGIES.get(className.substring(className.lastIndexOf('.') + 1)).get();
    }

    static ObjectNode answer(ServiceConfiguration config, JsonNode input) throws Exception {
        ObjectNode answer = Oracle.JSON.createObjectNode();
        ArrayNode steps = answer.putArray("steps");
        ModularLoadManagerStrategy strategy = STRATEGIES.get(input.get("strategy").asText()).get();
        for (JsonNode step : input.get("steps")) {
            if (step.has("activeBrokers")) {
                strategy.onActiveBrokersChange(new LinkedHashSet<>(Config.texts(step.get("activeBrokers"))));
            }
            Set<String> candidates = new LinkedHashSet<>(Config.texts(step.get("candidates")));
            LoadData data = Loads.modular(step.path("loadData"));
            ObjectNode told = steps.addObject();
            Optional<String> selected = strategy.selectBroker(candidates, new BundleData(), data, config);
            if (selected.isEmpty() || strategy instanceof RoundRobinBrokerSelector) {
                told.put("selected", selected.orElse(null));
            } else if (strategy instanceof AvgShedder) {
                told.set("candidates", drawn(candidates, data, config));
            } else {
                Collection<?> best = (Collection<?>) Fields.get(strategy, "bestBrokers");
                told.set("candidates", Oracle.JSON.valueToTree(new TreeSet<>(best)));
            }
            if (strategy instanceof LeastResourceUsageWithWeight) {
                Object usages = Fields.get(strategy, "brokerAvgResourceUsageWithWeight");
                told.set("brokerAvgResourceUsageWithWeight", Oracle.JSON.valueToTree(usages));
            }
        }
        return answer;
    }

    /** A bundle stays bound to the broker once drawn for it, so every draw is a new strategy's first. */
    private static ArrayNode drawn(Set<String> candidates, LoadData data, ServiceConfiguration config) {
        Set<String> drawn = new TreeSet<>();
        for (int draw = 0; draw < DRAWS_PER_CANDIDATE * candidates.size(); draw++) {
            new AvgShedder().selectBroker(candidates, new BundleData(), data, config).ifPresent(drawn::add);
        }
        return Oracle.JSON.valueToTree(drawn);
    }
}
