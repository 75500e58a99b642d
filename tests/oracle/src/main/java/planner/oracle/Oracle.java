package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
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
    static final ObjectMapper JSON = new ObjectMapper();

    /** Decides one vector. */
    interface Kind {
        ObjectNode answer(ServiceConfiguration config, JsonNode input) throws Exception;
    }

    private static final Map<String, Kind> KINDS = new HashMap<>();

    static {
        KINDS.put("topic_to_bundle", Topics::answer);
        KINDS.put("broker_time_average", Averages::brokerTimeAverage);
        KINDS.put("resource_usage", Averages::resourceUsage);
        KINDS.put("broker_load_data", Averages::brokerLoadData);
        for (String kind : List.of("shedder_overload", "shedder_threshold", "shedder_uniform", "shedder_avg")) {
            KINDS.put(kind, (config, input) -> ModularShedders.answer(kind, config, input));
        }
        KINDS.put("placement", Oracle::placement);
        KINDS.put("modular_manager", ModularManager::answer);
        KINDS.put("dispatch_throttle", Throttling::answer);
        KINDS.put("dispatch_precedence", DispatchLimits::precedence);
        KINDS.put("dispatch_entries", DispatchLimits::entries);
        KINDS.put("shedder_transfer", Extensible::transfer);
        KINDS.put("auto_split_extensible", Extensible::split);
        KINDS.put("top_k_bundles", Extensible::topBundles);
        KINDS.put("bundle_split", Splits::bundleSplit);
        KINDS.put("auto_split_modular", Splits::autoSplit);
        KINDS.put("time_average", Splits::timeAverage);
        KINDS.put("manual_split", Splits::manualSplit);
    }

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
                Kind kind = KINDS.get(vector.get("kind").asText());
                answer.set("expected", kind.answer(config, vector.get("input")));
            } catch (Throwable failure) {
                failure.printStackTrace();
                answer.put("failure", failure.toString());
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
        System.exit(0); // some stand-ins leave threads behind
    }

    private static ObjectNode placement(ServiceConfiguration config, JsonNode input) throws Exception {
        boolean modular = ModularPlacements.knows(input.get("strategy").asText());
        return modular ? ModularPlacements.answer(config, input) : Extensible.placement(config, input);
    }
}
