package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.pulsar.broker.ServiceConfiguration;

/**
 * Answers conformance vectors with Pulsar's own classes.
 *
 * <p>Reads one vector a line on standard input and answers each at once with one line {"id", "expected"}, or {"id",
 * "failure"} when Pulsar's class or this program raised something that is no answer. What surrounds the deciding class in
 * a broker is a stand-in that gives the vector's data.
 */
public final class Oracle {
    static final ObjectMapper JSON =
            JsonMapper.builder().enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build();

    /** The class and method of each kind; looked up by name, because a release may lack the classes of some. */
    private static final Map<String, String> KINDS = Map.ofEntries(
            Map.entry("topic_to_bundle", "Topics.answer"),
            Map.entry("broker_time_average", "Averages.brokerTimeAverage"),
            Map.entry("resource_usage", "Averages.resourceUsage"),
            Map.entry("broker_load_data", "Averages.brokerLoadData"),
            Map.entry("shedder_overload", "ModularShedders.overload"),
            Map.entry("shedder_threshold", "ModularShedders.threshold"),
            Map.entry("shedder_uniform", "ModularShedders.uniform"),
            Map.entry("shedder_avg", "ModularShedders.avg"),
            Map.entry("placement", "Oracle.placement"),
            Map.entry("modular_manager", "ModularManager.answer"),
            Map.entry("dispatch_throttle", "Throttling.answer"),
            Map.entry("dispatch_precedence", "DispatchLimits.precedence"),
            Map.entry("dispatch_entries", "DispatchLimits.entries"),
            Map.entry("shedder_transfer", "Extensible.transfer"),
            Map.entry("auto_split_extensible", "Extensible.split"),
            Map.entry("top_k_bundles", "Extensible.topBundles"),
            Map.entry("bundle_split", "Splits.bundleSplit"),
            Map.entry("auto_split_modular", "Splits.autoSplit"),
            Map.entry("time_average", "Splits.timeAverage"),
            Map.entry("manual_split", "ManualSplits.manualSplit"),
            Map.entry("settings", "Config.settings"));

    private Oracle() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // what Pulsar logs is no answer
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode vector = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            answer.set("id", vector.get("id"));
            try {
                ServiceConfiguration config = Config.of(vector.path("config"));
                answer.set("expected", decide(vector.get("kind").asText(), config, vector.get("input")));
            } catch (Throwable failure) {
                failure.printStackTrace();
                answer.put("failure", failure.toString());
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
        System.exit(0); // some stand-ins leave threads behind
    }

    private static ObjectNode decide(String kind, ServiceConfiguration config, JsonNode input) throws Throwable {
        String[] named = KINDS.get(kind).split("\\.");
        Method method = Class.forName("planner.oracle." + named[0])
                .getDeclaredMethod(named[1], ServiceConfiguration.class, JsonNode.class);
        try {
            return (ObjectNode) method.invoke(null, config, input);
        } catch (InvocationTargetException raised) {
            throw raised.getCause();
        }
    }

    static ObjectNode placement(ServiceConfiguration config, JsonNode input) throws Exception {
        boolean modular = ModularPlacements.knows(input.get("strategy").asText());
        return modular ? ModularPlacements.answer(config, input) : Extensible.placement(config, input);
    }
}
