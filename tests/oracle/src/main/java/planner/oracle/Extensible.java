package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.Range;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.zip.CRC32;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitState;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannelImpl;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerLoadManagerClassFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerMaxTopicCountFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerVersionFilter;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitDecision;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.policies.AntiAffinityGroupPolicyHelper;
import org.apache.pulsar.broker.loadbalance.extensions.policies.IsolationPoliciesHelper;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.BrokerSelectionStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.DefaultNamespaceBundleSplitStrategyImpl;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.LocalPoliciesResources;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.common.naming.BundleSplitOption;
import org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitOption;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.mockito.MockedStatic;
import org.mockito.Mockito;

/**
 * The extensible load manager's shedder, splitter, report and placement strategies.
 */
final class Extensible {
    private Extensible() {}

    // The rest of the broker

    private static <T> T stub(Class<T> type) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly());
    }

    private static NamespaceBundleFactory bundleFactory() {
        NamespaceBundleFactory factory = stub(NamespaceBundleFactory.class);
        Mockito.when(factory.getBundle(Mockito.anyString(), Mockito.anyString())).thenAnswer(call -> {
            String[] ends = call.<String>getArgument(1).split("_");
            return new NamespaceBundle(NamespaceName.get(call.<String>getArgument(0)),
                    NamespaceBundleFactory.getRange(Long.decode(ends[0]), Long.decode(ends[1])), factory);
        });
        Mockito.when(factory.getBundle(Mockito.any(NamespaceName.class), Mockito.any())).thenAnswer(call ->
                new NamespaceBundle(call.getArgument(0), call.<Range<Long>>getArgument(1), factory));
        Mockito.when(factory.canSplitBundle(Mockito.any())).thenAnswer(call -> {
            Range<Long> range = call.<NamespaceBundle>getArgument(0).getKeyRange();
            return range.upperEndpoint() - range.lowerEndpoint() > 1;
        });
        Mockito.when(factory.getLongHashCode(Mockito.anyString())).thenAnswer(call -> {
            CRC32 crc = new CRC32();
            crc.update(call.<String>getArgument(0).getBytes(StandardCharsets.UTF_8));
            return crc.getValue();
        });
        return factory;
    }

    private static PulsarService pulsar(ServiceConfiguration conf, NamespaceService namespaces) {
        NamespaceBundleFactory factory = bundleFactory();
        Mockito.when(namespaces.getNamespaceBundleFactory()).thenReturn(factory);
        PulsarService pulsar = stub(PulsarService.class);
        Mockito.when(pulsar.getConfiguration()).thenReturn(conf);
        Mockito.when(pulsar.getNamespaceService()).thenReturn(namespaces);
        return pulsar;
    }

    private record Store<T>(Map<String, T> map) implements LoadDataStore<T> {
        public CompletableFuture<Void> pushAsync(String key, T value) {
            throw new UnsupportedOperationException();
        }

        public CompletableFuture<Void> removeAsync(String key) {
            throw new UnsupportedOperationException();
        }

        public Optional<T> get(String key) {
            return Optional.ofNullable(map.get(key));
        }

        public void forEach(BiConsumer<String, T> action) {
            map.forEach(action);
        }

        public Set<Map.Entry<String, T>> entrySet() {
            return map.entrySet();
        }

        public int size() {
            return map.size();
        }

        public void closeTableView() {}

        public void start() {}

        public void init() {}

        public void startTableView() {}

        public void startProducer() {}

        public void close() {}
    }

    private record Context(ServiceConfiguration brokerConfiguration, LoadDataStore<BrokerLoadData> brokerLoadDataStore,
            LoadDataStore<TopBundlesLoadData> topBundleLoadDataStore, BrokerRegistry brokerRegistry)
            implements LoadManagerContext {}

    /** What any broker registers; releases differ in how much they tell. */
    private static BrokerLookupData lookupData() {
        Map<Class<?>, Object> values = Map.of(String.class, "4.2.4", Map.class, Map.of(), boolean.class, true, long.class, 0L);
        Constructor<?> made = BrokerLookupData.class.getDeclaredConstructors()[0];
        try {
            return (BrokerLookupData) made.newInstance(
                    Arrays.stream(made.getParameterTypes()).map(values::get).toArray());
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    // TransferShedder

    private record VectorFilter(JsonNode keeps, Set<String> fails) implements BrokerFilter {
        public String name() {
            return "vector";
        }

        /** As 3.0.2 asks. */
        public Map<String, BrokerLookupData> filter(Map<String, BrokerLookupData> brokers, ServiceUnitId unit,
                LoadManagerContext context) {
            return filterAsync(brokers, unit, context).join();
        }

        public CompletableFuture<Map<String, BrokerLookupData>> filterAsync(Map<String, BrokerLookupData> brokers,
                ServiceUnitId unit, LoadManagerContext context) {
            String namespace = unit.getNamespaceObject().toString();
            if (fails.contains(namespace)) {
                return CompletableFuture.failedFuture(new IllegalStateException("as the vector asks"));
            }
            if (keeps.has(namespace)) {
                brokers.keySet().retainAll(Config.texts(keeps.get(namespace)));
            }
            return CompletableFuture.completedFuture(brokers);
        }
    }

    static ObjectNode transfer(ServiceConfiguration conf, JsonNode input) throws Exception {
        Cycle cycle = new Cycle(conf, input);
        ArrayNode steps = Oracle.JSON.createArrayNode();
        for (JsonNode step : input.get("steps")) {
            cycle.now(step);
            Map<String, Long> before = counts(cycle.counter);
            Set<UnloadDecision> decided = cycle.unloads();

            ObjectNode answer = steps.addObject();
            answer.set("decisions", unloads(decided));
            ObjectNode moved = answer.putObject("counters");
            counts(cycle.counter).forEach((name, count) -> {
                if (!count.equals(before.get(name))) {
                    moved.put(name, count - before.get(name));
                }
            });
            answer.put("unloadConditionHitCount", (int) Fields.get(cycle.shedder, "unloadConditionHitCount"));
            answer.set("recentlyUnloadedBrokersAfter", Oracle.JSON.valueToTree(new TreeSet<>(cycle.recentBrokers.keySet())));
            answer.put("loadAvg", cycle.counter.getLoadAvg());
            answer.put("loadStd", cycle.counter.getLoadStd());
            ObjectNode usages = answer.putObject("weightedMaxEMA");
            ObjectNode throughputs = answer.putObject("msgThroughputEMA");
            cycle.loads.forEach((name, load) -> {
                usages.put(name, load.getWeightedMaxEMA());
                throughputs.put(name, load.getMsgThroughputEMA());
            });
        }
        return Oracle.JSON.createObjectNode().<ObjectNode>set("steps", steps);
    }

    /** A shedder, and what it is told from step to step. */
    static final class Cycle {
        private final ServiceConfiguration conf;
        private final JsonNode input;
        private final UnloadCounter counter = new UnloadCounter();
        private final TransferShedder shedder = new TransferShedder(counter);
        private final Map<String, String> owners = new HashMap<>();
        private final Map<String, BrokerLoadData> known = new HashMap<>();
        private Map<String, BrokerLoadData> loads;
        private Map<String, Long> recentBundles;
        private Map<String, Long> recentBrokers;
        private Context context;

        Cycle(ServiceConfiguration conf, JsonNode input) throws Exception {
            this.conf = conf;
            this.input = input;
            Set<String> isolated = new HashSet<>(Config.texts(input.path("isolated")));
            Set<String> grouped = new HashSet<>(Config.texts(input.path("antiAffinity")));
            IsolationPoliciesHelper isolation = stub(IsolationPoliciesHelper.class);
            Mockito.when(isolation.hasIsolationPolicy(Mockito.any())).thenAnswer(call ->
                    isolated.contains(call.getArgument(0).toString()));
            AntiAffinityGroupPolicyHelper groups = stub(AntiAffinityGroupPolicyHelper.class);
            Mockito.when(groups.hasAntiAffinityGroupPolicy(Mockito.anyString())).thenAnswer(call ->
                    grouped.contains(call.<String>getArgument(0).replaceAll("/[^/]*$", "")));
            ServiceUnitStateChannel channel = stub(ServiceUnitStateChannel.class);
            Mockito.when(channel.isOwner(Mockito.anyString(), Mockito.anyString())).thenAnswer(call ->
                    call.getArgument(1).equals(owners.get(call.<String>getArgument(0))));
            BrokerFilter filter =
                    new VectorFilter(input.path("filterKeeps"), Set.copyOf(Config.texts(input.path("filterFails"))));
            Fields.set(shedder, "pulsar", pulsar(conf, stub(NamespaceService.class)));
            Fields.set(shedder, "channel", channel);
            Fields.set(shedder, "isolationPoliciesHelper", isolation);
            Fields.set(shedder, "antiAffinityGroupPolicyHelper", groups);
            Fields.set(shedder, "brokerFilterPipeline", List.of(filter));
        }

        /** Filters as a broker does, as far as that needs no metadata store. */
        void usePulsarFilters() throws ReflectiveOperationException {
            conf.setLoadManagerClassName(lookupData().getLoadManagerClassName());
            Fields.set(shedder, "brokerFilterPipeline", List.of(
                    new BrokerLoadManagerClassFilter(), new BrokerMaxTopicCountFilter(), new BrokerVersionFilter()));
        }

        /** Takes the reports of a step. */
        void now(JsonNode step) throws Exception {
            long shift = System.currentTimeMillis() - input.get("nowMs").asLong();
            loads = new ConcurrentHashMap<>();
            for (Map.Entry<String, JsonNode> one : step.get("brokerLoad").properties()) {
                BrokerLoadData load = known.computeIfAbsent(one.getKey(), name -> new BrokerLoadData());
                Loads.update(load, one.getValue(), conf);
                Fields.set(load, "updatedAt", one.getValue().get("updatedAtMs").asLong() + shift);
                loads.put(one.getKey(), load);
            }
            owners.clear();
            context = new Context(conf, new Store<>(loads), new Store<>(reports(step, owners)), registry(step));
            recentBundles = moments(step.path("recentlyUnloadedBundles"), shift);
            recentBrokers = moments(step.path("recentlyUnloadedBrokers"), shift);
        }

        Set<UnloadDecision> unloads() {
            return shedder.findBundlesForUnloading(context, recentBundles, recentBrokers);
        }
    }

    private static Map<String, TopBundlesLoadData> reports(JsonNode step, Map<String, String> owners) {
        Map<String, TopBundlesLoadData> reports = new ConcurrentHashMap<>();
        step.get("topBundles").fields().forEachRemaining(one -> {
            TopBundlesLoadData report = new TopBundlesLoadData();
            for (JsonNode bundle : one.getValue()) {
                String name = bundle.get("bundle").asText();
                report.getTopBundlesLoadData().add(new TopBundlesLoadData.BundleLoadData(name, Loads.stats(bundle)));
                owners.put(name, one.getKey());
            }
            reports.put(one.getKey(), report);
        });
        return reports;
    }

    private static BrokerRegistry registry(JsonNode step) {
        Map<String, BrokerLookupData> available = new HashMap<>();
        Config.texts(step.get("availableBrokers")).forEach(name -> available.put(name, lookupData()));
        BrokerRegistry registry = stub(BrokerRegistry.class);
        Mockito.when(registry.getAvailableBrokersAsync()).thenAnswer(call ->
                CompletableFuture.completedFuture(new ArrayList<>(available.keySet())));
        Mockito.when(registry.getAvailableBrokerLookupDataAsync()).thenAnswer(call ->
                CompletableFuture.completedFuture(new HashMap<>(available)));
        return registry;
    }

    private static Map<String, Long> moments(JsonNode given, long shift) {
        Map<String, Long> moments = new HashMap<>();
        given.fields().forEachRemaining(one -> moments.put(one.getKey(), one.getValue().asLong() + shift));
        return moments;
    }

    private static Map<String, Long> counts(UnloadCounter counter) {
        Map<String, Long> counts = new TreeMap<>();
        counter.getBreakdownCounters().forEach((label, reasons) ->
                reasons.forEach((reason, count) -> counts.put(label + "." + reason, count.get())));
        return counts;
    }

    private static ArrayNode unloads(Set<UnloadDecision> decided) {
        List<ObjectNode> rows = new ArrayList<>();
        for (UnloadDecision one : decided) {
            ObjectNode row = Oracle.JSON.createObjectNode();
            row.put("sourceBroker", one.getUnload().sourceBroker());
            row.put("bundle", one.getUnload().serviceUnit());
            row.put("destBroker", one.getUnload().destBroker().orElse(null));
            row.put("reason", one.getReason().name());
            rows.add(row);
        }
        rows.sort(Comparator.comparing((ObjectNode row) -> row.get("sourceBroker").asText())
                .thenComparing(row -> row.get("bundle").asText()));
        return Oracle.JSON.createArrayNode().addAll(rows);
    }

    // Automatic splitting

    static ObjectNode split(ServiceConfiguration conf, JsonNode input) throws Exception {
        SplitCounter counter = new SplitCounter();
        DefaultNamespaceBundleSplitStrategyImpl strategy = new DefaultNamespaceBundleSplitStrategyImpl(counter);
        ArrayNode steps = Oracle.JSON.createArrayNode();
        for (JsonNode step : input.get("steps")) {
            PulsarService pulsar = splittingBroker(conf, step);
            ServiceUnitStateChannelImpl channel = channel(step);
            BrokerRegistry registry = stub(BrokerRegistry.class);
            Mockito.when(registry.getBrokerId()).thenReturn("broker");
            long failures = failures(counter);
            Set<SplitDecision> decided;
            try (MockedStatic<ServiceUnitStateChannelImpl> channels = Mockito.mockStatic(ServiceUnitStateChannelImpl.class)) {
                channels.when(() -> ServiceUnitStateChannelImpl.get(Mockito.any())).thenReturn(channel);
                decided = strategy.findBundlesToSplit(new Context(conf, null, null, registry), pulsar);
            } catch (IllegalArgumentException emptyChild) {
                decided = Set.of(); // SplitScheduler logs it and waits for the next cycle
            }
            ObjectNode answer = steps.addObject();
            answer.set("decisions", splits(decided));
            answer.set("splitConditionHitCounts", Oracle.JSON.valueToTree(Fields.get(strategy, "splitConditionHitCounts")));
            answer.put("failures", failures(counter) - failures);
        }
        return Oracle.JSON.createObjectNode().<ObjectNode>set("steps", steps);
    }

    private static PulsarService splittingBroker(ServiceConfiguration conf, JsonNode step) throws Exception {
        NamespaceService namespaces = stub(NamespaceService.class);
        Mockito.doAnswer(call -> step.get("namespaceBundleCounts").path(call.getArgument(0).toString()).asInt())
                .when(namespaces).getBundleCount(Mockito.any());
        Mockito.when(namespaces.getNamespaceBundleSplitAlgorithmByName(Mockito.any())).thenAnswer(call -> {
            NamespaceBundleSplitAlgorithm named = NamespaceBundleSplitAlgorithm.of(call.getArgument(0));
            return named == null ? NamespaceBundleSplitAlgorithm.RANGE_EQUALLY_DIVIDE_ALGO : named;
        });
        Mockito.when(namespaces.getOwnedTopicListForNamespaceBundle(Mockito.any())).thenAnswer(call ->
                CompletableFuture.completedFuture(Config.texts(step.path("bundleTopics").path(call.getArgument(0).toString()))));
        Mockito.when(namespaces.getSplitBoundary(Mockito.any(NamespaceBundle.class), Mockito.nullable(List.class),
                Mockito.any(NamespaceBundleSplitAlgorithm.class))).thenAnswer(call ->
                call.<NamespaceBundleSplitAlgorithm>getArgument(2).getSplitBoundary(
                        option(conf, namespaces, call.getArgument(2), call.getArgument(0), call.getArgument(1), step)));
        Map<String, NamespaceBundleStats> stats = new LinkedHashMap<>();
        step.get("bundleStats").fields().forEachRemaining(one -> stats.put(one.getKey(), Loads.stats(one.getValue())));
        BrokerService service = stub(BrokerService.class);
        Mockito.when(service.getBundleStats()).thenReturn(stats);
        PulsarService pulsar = pulsar(conf, namespaces);
        Mockito.when(pulsar.getBrokerService()).thenReturn(service);
        return pulsar;
    }

    private static BundleSplitOption option(ServiceConfiguration conf, NamespaceService namespaces,
            NamespaceBundleSplitAlgorithm algorithm, NamespaceBundle bundle, List<Long> positions, JsonNode step)
            throws Exception {
        if (algorithm != NamespaceBundleSplitAlgorithm.of(NamespaceBundleSplitAlgorithm.FLOW_OR_QPS_EQUALLY_DIVIDE)) {
            return new BundleSplitOption(namespaces, bundle, positions);
        }
        return new FlowOrQpsEquallyDivideBundleSplitOption(namespaces, bundle, positions, Splits.topicStats(step),
                conf.getLoadBalancerNamespaceBundleMaxMsgRate(), conf.getLoadBalancerNamespaceBundleMaxBandwidthMbytes(),
                conf.getFlowOrQpsDifferenceThresholdPercentage());
    }

    private static ServiceUnitStateChannelImpl channel(JsonNode step) {
        Set<String> foreign = new HashSet<>(Config.texts(step.path("notOwned")));
        ServiceUnitStateChannelImpl channel = stub(ServiceUnitStateChannelImpl.class);
        Mockito.when(channel.isOwner(Mockito.anyString())).thenAnswer(call ->
                !foreign.contains(call.<String>getArgument(0)));
        Map<String, ServiceUnitStateData> states = new HashMap<>();
        Config.texts(step.path("splitting")).forEach(name ->
                states.put(name, new ServiceUnitStateData(ServiceUnitState.Splitting, "broker", "broker", 1L)));
        Mockito.when(channel.getOwnershipEntrySet()).thenReturn(states.entrySet());
        return channel;
    }

    private static long failures(SplitCounter counter) throws Exception {
        long sum = 0;
        for (Object count : ((Map<?, ?>) ((Map<?, ?>) Fields.get(counter, "breakdownCounters"))
                .get(SplitDecision.Label.Failure)).values()) {
            sum += ((AtomicLong) count).get();
        }
        return sum;
    }

    private static ArrayNode splits(Set<SplitDecision> decided) {
        List<ObjectNode> rows = new ArrayList<>();
        for (SplitDecision one : decided) {
            ObjectNode row = Oracle.JSON.createObjectNode();
            row.put("bundle", one.getSplit().serviceUnit());
            row.put("reason", one.getReason().name());
            row.set("children", Oracle.JSON.valueToTree(new TreeSet<>(one.getSplit().splitServiceUnitToDestBroker().keySet())));
            rows.add(row);
        }
        rows.sort(Comparator.comparing(row -> row.get("bundle").asText()));
        return Oracle.JSON.createArrayNode().addAll(rows);
    }

    // Top bundles

    static ObjectNode topBundles(ServiceConfiguration conf, JsonNode input) throws Exception {
        LocalPoliciesResources local = stub(LocalPoliciesResources.class);
        PulsarResources resources = stub(PulsarResources.class);
        Mockito.when(resources.getLocalPolicies()).thenReturn(local);
        PulsarService pulsar = pulsar(conf, stub(NamespaceService.class));
        Mockito.when(pulsar.getPulsarResources()).thenReturn(resources);
        TopKBundles top = new TopKBundles(pulsar);
        Fields.set(top, "allocationPolicies", stub(SimpleResourceAllocationPolicies.class));
        Map<String, NamespaceBundleStats> stats = new ConcurrentHashMap<>();
        input.get("bundleStats").fields().forEachRemaining(one -> stats.put(one.getKey(), Loads.stats(one.getValue())));
        top.update(stats, conf.getLoadBalancerMaxNumberOfBundlesInBundleLoadReport());
        ArrayNode names = Oracle.JSON.createArrayNode();
        top.getLoadData().getTopBundlesLoadData().forEach(bundle -> names.add(bundle.bundleName()));
        return Oracle.JSON.createObjectNode().<ObjectNode>set("topBundles", names);
    }

    // Placement

    private static final String TURNS =
            "org.apache.pulsar.broker.loadbalance.extensions.strategy.RoundRobinBrokerSelectionStrategy";

    static ObjectNode placement(ServiceConfiguration conf, JsonNode input) throws Exception {
        boolean turns = input.get("strategy").asText().equals("RoundRobinBrokerSelectionStrategy");
        BrokerSelectionStrategy strategy = turns
                ? (BrokerSelectionStrategy) Class.forName(TURNS).getDeclaredConstructor().newInstance()
                : new LeastResourceUsageWithWeight();
        ServiceUnitId unit = stub(NamespaceBundle.class);
        ArrayNode steps = Oracle.JSON.createArrayNode();
        for (JsonNode step : input.get("steps")) {
            Map<String, BrokerLoadData> loads = new LinkedHashMap<>();
            step.path("brokerLoad").fields().forEachRemaining(one -> {
                BrokerLoadData load = new BrokerLoadData();
                Loads.update(load, one.getValue(), conf);
                loads.put(one.getKey(), load);
            });
            Context context = new Context(conf, new Store<>(loads), null, null);
            Set<String> candidates = new LinkedHashSet<>(Config.texts(step.get("candidates")));
            ObjectNode answer = steps.addObject();
            if (turns) {
                answer.put("selected", strategy.select(candidates, unit, context).orElse(null));
                continue;
            }
            Set<String> drawn = new TreeSet<>();
            for (int draw = 0; draw < 60 * candidates.size(); draw++) {
                strategy.select(candidates, unit, context).ifPresent(drawn::add);
            }
            if (drawn.isEmpty()) {
                answer.putNull("selected");
            } else {
                answer.set("candidates", Oracle.JSON.valueToTree(drawn));
            }
            ObjectNode usages = answer.putObject("weightedMaxEMA");
            loads.forEach((name, load) -> usages.put(name, load.getWeightedMaxEMA()));
        }
        return Oracle.JSON.createObjectNode().<ObjectNode>set("steps", steps);
    }
}
