package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.mockito.Mockito;

/**
 * Measures how long the official shedding strategies, or whole cycles with placement, take over a vector's first step.
 *
 * <p>Reads vectors, and answers each with {"ms", "runs", "moves"}: the median CPU time of the thread that decides, over
 * the runs after the warm-up. Every run starts from the same memory and the same load data, which is built once.
 */
public final class Bench {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Before the name of a strategy that decides: measure the cycle of the load manager around it as well. */
    private static final String WHOLE = "cycle_";

    /** One decision; returns how many bundles it moves. */
    private interface Run {
        int decide() throws Exception;
    }

    /** Prepares a decision, which is not measured. */
    private interface Preparation {
        Run fresh() throws Exception;
    }

    private Bench() {}

    /** Takes the CPU time in ms to warm up for, and at most to measure for, and the most runs to measure. */
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode vector = Oracle.JSON.readTree(line);
            ServiceConfiguration config = Config.of(vector.path("config"));
            Preparation preparation = preparation(vector.get("kind").asText(), config, vector.get("input"));
            out.println(measured(preparation, Long.parseLong(args[0]), Integer.parseInt(args[1])));
            out.flush();
        }
        System.exit(0);
    }

    private static Preparation preparation(String kind, ServiceConfiguration config, JsonNode input) throws Exception {
        if (kind.equals("shedder_transfer")) {
            Extensible.Cycle cycle = new Extensible.Cycle(config, input);
            cycle.usePulsarFilters();
            cycle.now(input.get("steps").get(0));
            return () -> () -> cycle.unloads().size();
        }
        if (kind.startsWith(WHOLE)) {
            JsonNode whole = input.get("steps").get(0);
            String shedder = kind.substring(WHOLE.length());
            return () -> {
                Mockito.framework().clearInlineMocks(); // else those of every leader before stay in memory
                return ModularManager.cycle(config, whole, () -> ModularShedders.strategy(shedder))::call;
            };
        }
        LoadData data = Loads.modular(input.get("steps").get(0).get("loadData"));
        return () -> {
            LoadSheddingStrategy strategy = ModularShedders.strategy(kind);
            return () -> strategy.findBundlesForUnloading(data, config).size();
        };
    }

    private static ObjectNode measured(Preparation preparation, long warmUpMs, int runs) throws Exception {
        for (long spent = 0; spent < warmUpMs * 1_000_000;) {
            spent += measure(preparation.fresh()).nanos();
        }
        int moves = 0;
        List<Long> taken = new ArrayList<>();
        for (long spent = 0; taken.isEmpty() || taken.size() < runs && spent < warmUpMs * 1_000_000;) {
            Measure one = measure(preparation.fresh());
            taken.add(one.nanos());
            spent += one.nanos();
            moves = one.moves();
        }
        Collections.sort(taken);
        return Oracle.JSON.createObjectNode().put("ms", taken.get(taken.size() / 2) / 1e6)
                .put("runs", taken.size()).put("moves", moves);
    }

    private record Measure(long nanos, int moves) {}

    private static Measure measure(Run run) throws Exception {
        long start = THREADS.getCurrentThreadCpuTime();
        int moves = run.decide();
        return new Measure(THREADS.getCurrentThreadCpuTime() - start, moves);
    }
}
