package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.benmanes.caffeine.cache.AsyncLoadingCache;
import com.google.common.hash.Hashing;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.common.naming.BundleSplitOption;
import org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitOption;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.policies.data.stats.TopicStatsImpl;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.mockito.Mockito;

/**
 * Bundle splitting, by algorithm, by the modular leader and by hand, and the averages that it keeps of bundles.
 */
final class Splits {
    static final long PATIENCE_SECONDS = 4;

    private Splits() {}

    static ObjectNode bundleSplit(ServiceConfiguration conf, JsonNode given) throws Exception {
        ObjectNode answer = Oracle.JSON.createObjectNode();
        List<String> topics = given.hasNonNull("topics") ? Config.texts(given.get("topics")) : null;
        if (topics != null) {
            ObjectNode hashes = answer.putObject("topicHashes");
            for (String topic : topics) {
                CRC32 crc = new CRC32();
                crc.update(topic.getBytes(StandardCharsets.UTF_8));
                hashes.put(topic, crc.getValue());
            }
        }
        NamespaceBundleFactory factory = factory(broker(conf));
        String name = given.get("bundle").asText();
        String namespace = name.substring(0, name.lastIndexOf('/'));
        boundaries(factory, namespace, given.get("namespaceBoundaries"));
        NamespaceBundle bundle = factory.getBundle(namespace, name.substring(name.lastIndexOf('/') + 1));
        NamespaceService service = Mockito.mock(NamespaceService.class);
        Mockito.when(service.getOwnedTopicListForNamespaceBundle(Mockito.any())).thenReturn(done(topics));
        Mockito.when(service.getNamespaceBundleFactory()).thenReturn(factory);
        String algorithmName = given.get("algorithm").asText();
        NamespaceBundleSplitAlgorithm algorithm = given.path("force").asBoolean()
                ? NamespaceBundleSplitAlgorithm.SPECIFIED_POSITIONS_DIVIDE_FORCE_ALGO
                : NamespaceBundleSplitAlgorithm.of(algorithmName);
        BundleSplitOption option = new BundleSplitOption(service, bundle, positions(given));
        if (algorithmName.equals(NamespaceBundleSplitAlgorithm.FLOW_OR_QPS_EQUALLY_DIVIDE)) {
            option = new FlowOrQpsEquallyDivideBundleSplitOption(
                    service, bundle, positions(given), topicStats(given), conf.getLoadBalancerNamespaceBundleMaxMsgRate(),
                    conf.getLoadBalancerNamespaceBundleMaxBandwidthMbytes(),
                    conf.getFlowOrQpsDifferenceThresholdPercentage());
        }
        List<Long> cuts;
        try {
            cuts = algorithm.getSplitBoundary(option).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (Exception e) {
            return answer.put("error", cause(e).getClass().getSimpleName());
        }
        answer.set("splitBoundaries", Oracle.JSON.valueToTree(cuts));
        if (cuts == null || cuts.isEmpty()) {
            return answer.putNull("newBundles");
        }
        try {
            var split = factory.splitBundles(bundle, cuts.size() + 1, cuts).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            ArrayNode children = Oracle.JSON.createArrayNode();
            split.getRight().forEach(child -> children.add(child.getBundleRange()));
            answer.set("newBundles", children);
            answer.set("namespaceBoundariesAfter", Oracle.JSON.valueToTree(split.getLeft().getBundlesData().getBoundaries()));
        } catch (Exception e) {
            answer.put("splitError", cause(e).getClass().getSimpleName());
        }
        return answer;
    }

    static ObjectNode autoSplit(ServiceConfiguration conf, JsonNode given) throws Exception {
        PulsarService pulsar = Mockito.mock(PulsarService.class);
        NamespaceService service = Mockito.mock(NamespaceService.class);
        Mockito.when(pulsar.getConfiguration()).thenReturn(conf);
        Mockito.when(pulsar.getNamespaceService()).thenReturn(service);
        JsonNode counts = given.get("namespaceBundleCounts");
        Mockito.when(service.getBundleCount(Mockito.any()))
                .thenAnswer(call -> counts.path(call.getArgument(0).toString()).asInt());
        LoadData data = new LoadData();
        // Visited as listed: a real broker would visit them in the order of its hash maps.
        Fields.set(data, "brokerData", new LinkedHashMap<String, BrokerData>());
        each(given.get("loadData").get("brokers"), (broker, report) -> {
            Map<String, NamespaceBundleStats> stats = new LinkedHashMap<>();
            each(report.get("lastStats"), (bundle, values) -> stats.put(bundle, Loads.stats(values)));
            LocalBrokerData local = new LocalBrokerData();
            local.setLastStats(stats);
            data.getBrokerData().put(broker, new BrokerData(local));
        });
        each(given.get("loadData").get("bundleData"), (bundle, values) -> {
            BundleData averages = new BundleData(10, 1000);
            averages.getLongTermData().update(Loads.stats(values.get("longTermData")));
            data.getBundleData().put(bundle, averages);
        });
        Map<String, String> found = new BundleSplitterTask().findBundlesToSplit(data, pulsar);
        ObjectNode answer = Oracle.JSON.createObjectNode();
        answer.set("bundlesToSplit", Oracle.JSON.valueToTree(found));
        answer.set("order", Oracle.JSON.valueToTree(new ArrayList<>(found.keySet())));
        return answer;
    }

    static ObjectNode timeAverage(ServiceConfiguration conf, JsonNode given) throws Exception {
        int shortTerm = given.get("shortSamples").asInt();
        int longTerm = given.get("longSamples").asInt();
        BundleData data = given.has("defaultStats")
                ? new BundleData(shortTerm, longTerm, Loads.stats(given.get("defaultStats")))
                : new BundleData(shortTerm, longTerm);
        ObjectNode answer = Oracle.JSON.createObjectNode();
        ArrayNode checkpoints = answer.putArray("checkpoints");
        Set<Integer> wanted = new HashSet<>();
        given.get("checkpoints").forEach(checkpoint -> wanted.add(checkpoint.asInt()));
        for (int taken = 0; taken <= given.get("samples").size(); taken++) {
            if (taken > 0) {
                data.update(Loads.stats(given.get("samples").get(taken - 1)));
            }
            if (!wanted.contains(taken)) {
                continue;
            }
            ObjectNode now = Oracle.JSON.valueToTree(data);
            now.put("afterSamples", taken);
            now.put("longTermTotalMsgRate", data.getLongTermData().totalMsgRate());
            now.put("longTermTotalMsgThroughput", data.getLongTermData().totalMsgThroughput());
            checkpoints.add(now);
        }
        return answer;
    }

    private static final ScheduledExecutorService LATER = Executors.newSingleThreadScheduledExecutor();
    private static final OrderedExecutor ORDERED = OrderedExecutor.newBuilder().name("oracle").numThreads(1).build();

    static PulsarService broker(ServiceConfiguration conf) {
        PulsarService pulsar = Mockito.mock(PulsarService.class, Mockito.RETURNS_DEEP_STUBS);
        Mockito.doReturn(conf).when(pulsar).getConfiguration();
        Mockito.doReturn(conf).when(pulsar).getConfig();
        Mockito.doReturn(LATER).when(pulsar).getExecutor();
        Mockito.doReturn(ORDERED).when(pulsar).getOrderedExecutor();
        return pulsar;
    }

    static NamespaceBundleFactory factory(PulsarService pulsar) {
        return NamespaceBundleFactory.createFactory(pulsar, Hashing.crc32());
    }

    /** Puts the boundaries of a namespace where the factory keeps what it has read from the metadata store. */
    @SuppressWarnings("unchecked")
    static void boundaries(NamespaceBundleFactory factory, String namespace, JsonNode edges) throws Exception {
        List<Long> values = new ArrayList<>();
        edges.forEach(edge -> values.add(Long.decode(edge.asText())));
        for (Constructor<?> constructor : NamespaceBundles.class.getDeclaredConstructors()) {
            Class<?>[] types = constructor.getParameterTypes();
            if (types.length == 4 && types[3] == Collection.class) {
                constructor.setAccessible(true);
                NamespaceName name = NamespaceName.get(namespace);
                Object bundles = constructor.newInstance(name, factory, Optional.empty(), values);
                ((AsyncLoadingCache<NamespaceName, Object>) Fields.of(NamespaceBundleFactory.class, "bundlesCache")
                        .get(factory)).put(name, done(bundles));
            }
        }
    }

    static Map<String, TopicStatsImpl> topicStats(JsonNode given) throws Exception {
        Map<String, TopicStatsImpl> found = new HashMap<>();
        each(given.path("topicStats"), (topic, values) -> {
            TopicStatsImpl stats = new TopicStatsImpl();
            stats.msgRateIn = values.path("msgRateIn").asDouble();
            stats.msgRateOut = values.path("msgRateOut").asDouble();
            stats.msgThroughputIn = values.path("msgThroughputIn").asDouble();
            stats.msgThroughputOut = values.path("msgThroughputOut").asDouble();
            found.put(topic, stats);
        });
        return found;
    }

    static List<Long> positions(JsonNode given) {
        JsonNode positions = given.path("positions");
        if (!positions.isArray()) {
            return null;
        }
        List<Long> values = new ArrayList<>();
        positions.forEach(position -> values.add(position.asLong()));
        return values;
    }

    private interface Entry {
        void take(String name, JsonNode value) throws Exception;
    }

    private static void each(JsonNode object, Entry entry) throws Exception {
        for (Iterator<Map.Entry<String, JsonNode>> it = object.fields(); it.hasNext(); ) {
            Map.Entry<String, JsonNode> next = it.next();
            entry.take(next.getKey(), next.getValue());
        }
    }

    static <T> CompletableFuture<T> done(T value) {
        return CompletableFuture.completedFuture(value);
    }

    private static Throwable cause(Throwable error) {
        boolean wrapped = error instanceof ExecutionException || error instanceof CompletionException;
        return wrapped && error.getCause() != null ? cause(error.getCause()) : error;
    }
}
