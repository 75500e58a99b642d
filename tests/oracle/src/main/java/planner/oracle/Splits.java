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
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32;
import javax.ws.rs.WebApplicationException;
import javax.ws.rs.container.AsyncResponse;
import javax.ws.rs.core.Response;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.admin.v2.Namespaces;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerWrapper;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.manager.SplitManager;
import org.apache.pulsar.broker.loadbalance.extensions.models.Split;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerWrapper;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.namespace.OwnershipCache;
import org.apache.pulsar.broker.resources.TopicResources;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.common.naming.BundleSplitOption;
import org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitOption;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.TopicName;
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
    private static final long PATIENCE_SECONDS = 4;
    private static final String REACHED = "the bundle was to be split";

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

    /** The REST resource and everything below it, up to the moment at which ownership of the children would change. */
    static ObjectNode manualSplit(ServiceConfiguration conf, JsonNode given) throws Exception {
        List<String> topics = Config.texts(given.get("topics"));
        PulsarService pulsar = broker(conf);
        NamespaceBundleFactory factory = factory(pulsar);
        String namespace = given.get("namespace").asText();
        boundaries(factory, namespace, given.get("boundaries"));
        TopicResources store = Mockito.mock(TopicResources.class, call -> done(topics));
        Mockito.when(pulsar.getPulsarResources().getTopicResources()).thenReturn(store);
        BrokerService brokerService = Mockito.mock(BrokerService.class);
        Mockito.when(brokerService.getTopicStats(Mockito.any())).thenReturn(topicStats(given));
        Mockito.when(pulsar.getBrokerService()).thenReturn(brokerService);

        NamespaceService service = Mockito.mock(NamespaceService.class, Mockito.CALLS_REAL_METHODS);
        Mockito.doAnswer(call -> {
            NamespaceBundle bundle = call.getArgument(0);
            return done(topics.stream().filter(topic -> bundle.includes(TopicName.get(topic))).toList());
        }).when(service).getOwnedTopicListForNamespaceBundle(Mockito.any());
        OwnershipCache ownership = Mockito.mock(OwnershipCache.class, call -> {
            throw new IllegalStateException(REACHED);
        });
        Fields.set(service, "pulsar", pulsar);
        Fields.set(service, "config", conf);
        Fields.set(service, "bundleFactory", factory);
        Fields.set(service, "ownershipCache", ownership);
        Mockito.when(pulsar.getNamespaceService()).thenReturn(service);

        ObjectNode answer = Oracle.JSON.createObjectNode();
        boolean extensible = given.get("loadManager").asText().equals("extensible");
        LoadManager manager = extensible ? extensible(pulsar, conf, answer) : modular(given.get("bundleData"), namespace);
        AtomicReference<LoadManager> reference = new AtomicReference<>(manager);
        Mockito.when(pulsar.getLoadManager()).thenReturn(reference);
        Fields.set(service, "loadManager", reference);

        Namespaces resource = Mockito.mock(Namespaces.class, call -> {
            String method = call.getMethod().getName();
            if (method.equals("pulsar")) {
                return pulsar;
            }
            if (method.equals("config")) {
                return conf;
            }
            // Access rights and redirects; the bundle itself is validated for real.
            if (method.startsWith("validate") && !method.startsWith("validateNamespaceBundle")
                    && !method.equals("validateNamespaceName")) {
                return call.getMethod().getReturnType() == CompletableFuture.class ? done(null) : null;
            }
            return method.equals("clientAppId") ? "oracle" : call.callRealMethod();
        });
        resource.setPulsar(pulsar);
        CompletableFuture<Object> reply = new CompletableFuture<>();
        AsyncResponse response = Mockito.mock(AsyncResponse.class, call -> {
            if (call.getMethod().getName().equals("resume")) {
                reply.complete(call.getArgument(0));
            }
            return Mockito.RETURNS_DEFAULTS.answer(call);
        });
        String[] parts = namespace.split("/");
        JsonNode algorithm = given.get("algorithm");
        resource.splitNamespaceBundle(response, parts[0], parts[1], given.get("bundle").asText(), false, false,
                algorithm.isTextual() ? algorithm.asText() : null, positions(given));
        try {
            return told(reply.get(PATIENCE_SECONDS, TimeUnit.SECONDS), answer);
        } catch (TimeoutException e) {
            return answer.putNull("status");
        }
    }

    private static ObjectNode told(Object reply, ObjectNode answer) {
        if (answer.has("accepted")) {
            return answer;
        }
        if (reply instanceof Response response) {
            return answer.put("status", response.getStatus());
        }
        WebApplicationException error = (WebApplicationException) reply;
        String message = String.valueOf(error.getMessage());
        if (message.contains(REACHED)) {
            String before = message.substring(0, message.indexOf(" not success")).strip();
            return answer.put("accepted", before.substring(before.lastIndexOf(' ') + 1));
        }
        return answer.put("status", error.getResponse().getStatus());
    }

    private static LoadManager modular(JsonNode bundleData, String namespace) {
        return new ModularLoadManagerWrapper(Mockito.mock(ModularLoadManagerImpl.class, call -> {
            if (!call.getMethod().getName().startsWith("getBundleDataOrDefault")) {
                return Mockito.RETURNS_DEFAULTS.answer(call);
            }
            String name = call.getArgument(0);
            JsonNode values = bundleData.path(name.substring(namespace.length() + 1));
            BundleData data = new BundleData(10, 1000);
            if (values.isArray()) {
                data.setTopics(values.get(0).asInt());
                data.getLongTermData().setMsgThroughputIn(values.get(1).asDouble());
                data.getLongTermData().setMsgThroughputOut(values.get(2).asDouble());
            }
            return call.getMethod().getReturnType() == CompletableFuture.class ? done(data) : data;
        }));
    }

    private static LoadManager extensible(PulsarService pulsar, ServiceConfiguration conf, ObjectNode answer)
            throws Exception {
        ExtensibleLoadManagerImpl manager =
                Mockito.mock(ExtensibleLoadManagerImpl.class, Mockito.CALLS_REAL_METHODS);
        Mockito.doReturn(done(Optional.of("b1:8080"))).when(manager).getOwnershipAsync(Mockito.any(), Mockito.any());
        ServiceUnitStateChannel channel = Mockito.mock(ServiceUnitStateChannel.class, call -> {
            if (call.getMethod().getName().equals("publishSplitEventAsync")) {
                Split split = call.getArgument(0);
                answer.put("accepted", split.serviceUnit());
                answer.set("children", Oracle.JSON.valueToTree(new TreeSet<>(split.splitServiceUnitToDestBroker().keySet())));
            }
            return call.getMethod().getReturnType() == CompletableFuture.class
                    ? done(null) : Mockito.RETURNS_DEFAULTS.answer(call);
        });
        SplitManager waiter = Mockito.mock(SplitManager.class, call -> done(null));
        Fields.set(manager, "pulsar", pulsar);
        Fields.set(manager, "conf", conf);
        Fields.set(manager, "serviceUnitStateChannel", channel);
        Fields.set(manager, "splitManager", waiter);
        return new ExtensibleLoadManagerWrapper(manager);
    }

    private static final ScheduledExecutorService LATER = Executors.newSingleThreadScheduledExecutor();
    private static final OrderedExecutor ORDERED = OrderedExecutor.newBuilder().name("oracle").numThreads(1).build();

    private static PulsarService broker(ServiceConfiguration conf) {
        PulsarService pulsar = Mockito.mock(PulsarService.class, Mockito.RETURNS_DEEP_STUBS);
        Mockito.doReturn(conf).when(pulsar).getConfiguration();
        Mockito.doReturn(conf).when(pulsar).getConfig();
        Mockito.doReturn(LATER).when(pulsar).getExecutor();
        Mockito.doReturn(ORDERED).when(pulsar).getOrderedExecutor();
        return pulsar;
    }

    private static NamespaceBundleFactory factory(PulsarService pulsar) {
        return NamespaceBundleFactory.createFactory(pulsar, Hashing.crc32());
    }

    /** Puts the boundaries of a namespace where the factory keeps what it has read from the metadata store. */
    @SuppressWarnings("unchecked")
    private static void boundaries(NamespaceBundleFactory factory, String namespace, JsonNode edges) throws Exception {
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

    private static List<Long> positions(JsonNode given) {
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

    private static <T> CompletableFuture<T> done(T value) {
        return CompletableFuture.completedFuture(value);
    }

    private static Throwable cause(Throwable error) {
        boolean wrapped = error instanceof ExecutionException || error instanceof CompletionException;
        return wrapped && error.getCause() != null ? cause(error.getCause()) : error;
    }
}
