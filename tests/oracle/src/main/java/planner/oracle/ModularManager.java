package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.Multimap;
import com.google.common.collect.Range;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
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
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.BrokerLoadManagerClassFilter;
import org.apache.pulsar.broker.loadbalance.impl.BrokerVersionFilter;
import org.apache.pulsar.broker.loadbalance.impl.BundleRangeCache;
import org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate;
import org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.LoadBalanceResources;
import org.apache.pulsar.broker.resources.LocalPoliciesResources;
import org.apache.pulsar.broker.resources.NamespaceResources;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyData;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyType;
import org.apache.pulsar.common.policies.data.LocalPolicies;
import org.apache.pulsar.common.policies.impl.NamespaceIsolationPolicies;
import org.apache.pulsar.common.policies.data.NamespaceIsolationDataImpl;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;
import org.mockito.Mockito;

/**
 * Lets Pulsar's own modular load manager place and shed bundles of small clusters.
 *
 * <p>Reads one case a line on standard input, writes {"id", "expected"} a line on standard output. The load manager, its
 * filters and its strategies are the official classes; what surrounds them in a broker is a stand-in that gives the
 * case's data and writes down the unloads.
 */
final class ModularManager {
    private final ServiceConfiguration conf;
    private final ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
    private final NamespaceBundleFactory factory = stub(NamespaceBundleFactory.class);
    private final LoadData loadData;
    private final Map<String, LocalBrokerData> reports = new LinkedHashMap<>();
    private final ArrayNode unloads = Oracle.JSON.createArrayNode();
    private final List<ObjectNode> calls = new ArrayList<>();
    private final Multimap<String, String> chosen = ArrayListMultimap.create();

    static ObjectNode answer(ServiceConfiguration config, JsonNode input) throws Exception {
        return Oracle.JSON.createObjectNode()
                .set("requests", new ModularManager(config, input).answer(input.get("requests")));
    }

    private ModularManager(ServiceConfiguration config, JsonNode input) throws Exception {
        conf = config;
        conf.setClusterName("c");
        loadData = (LoadData) Fields.get(manager, "loadData");
        PulsarService pulsar = pulsar(input);
        Fields.set(manager, "pulsar", pulsar);
        Fields.set(manager, "conf", conf);
        Fields.set(manager, "pulsarResources", pulsar.getPulsarResources());
        Fields.set(manager, "policies", new SimpleResourceAllocationPolicies(pulsar));
        Fields.set(manager, "placementStrategy", recorded(conf.getLoadBalancerLoadPlacementStrategy()));
        Fields.set(manager, "sheddingExcludedNamespaceSelectionStrategy", recorded("RoundRobinBrokerSelector"));
        @SuppressWarnings("unchecked")
        List<BrokerFilter> filters = (List<BrokerFilter>) Fields.get(manager, "filterPipeline");
        filters.add(new BrokerLoadManagerClassFilter());
        filters.add(new BrokerVersionFilter());
        Map<String, String> domains = new LinkedHashMap<>();
        each(input.path("domains"), (name, brokers) -> brokers.forEach(broker -> domains.put(broker.asText(), name)));
        Fields.set(manager, "brokerToFailureDomainMap", conf.isFailureDomainsEnabled() ? domains : Map.of());
        LoadSheddingStrategy shedder = stub(LoadSheddingStrategy.class);
        Mockito.when(shedder.findBundlesForUnloading(Mockito.any(), Mockito.any())).thenReturn(chosen);
        Fields.set(manager, "loadSheddingStrategy", shedder);
        fill(input);
    }

    // The cluster

    private PulsarService pulsar(JsonNode input) throws Exception {
        PulsarService pulsar = stub(PulsarService.class);
        Mockito.when(pulsar.getConfiguration()).thenReturn(conf);
        Mockito.when(factory.getBundle(Mockito.anyString(), Mockito.anyString())).thenAnswer(call ->
                bundle(call.<String>getArgument(0) + "/" + call.<String>getArgument(1)));
        NamespaceService namespaces = stub(NamespaceService.class);
        Mockito.when(namespaces.getNamespaceBundleFactory()).thenReturn(factory);
        Set<NamespaceBundle> owned = new LinkedHashSet<>();
        input.path("ownedByLeader").forEach(name -> owned.add(bundle(name.asText())));
        Mockito.when(namespaces.getOwnedServiceUnits()).thenReturn(owned);
        Mockito.when(pulsar.getNamespaceService()).thenReturn(namespaces);
        PulsarResources resources = stub(PulsarResources.class);
        Mockito.when(pulsar.getPulsarResources()).thenReturn(resources);
        LocalPoliciesResources local = stub(LocalPoliciesResources.class);
        Mockito.when(resources.getLocalPolicies()).thenReturn(local);
        JsonNode groups = input.path("groups");
        Mockito.when(local.getLocalPolicies(Mockito.any())).thenAnswer(call -> policies(groups, call.getArgument(0)));
        Mockito.when(local.getLocalPoliciesAsync(Mockito.any())).thenAnswer(call ->
                CompletableFuture.completedFuture(policies(groups, call.getArgument(0))));
        NamespaceResources spaces = stub(NamespaceResources.class);
        NamespaceResources.IsolationPolicyResources isolation = stub(NamespaceResources.IsolationPolicyResources.class);
        Mockito.when(resources.getNamespaceResources()).thenReturn(spaces);
        Mockito.when(spaces.getIsolationPolicies()).thenReturn(isolation);
        Optional<NamespaceIsolationPolicies> isolated = isolation(input.path("isolation"));
        Mockito.when(isolation.getIsolationDataPolicies(Mockito.any())).thenReturn(isolated);
        Mockito.when(isolation.getIsolationDataPoliciesAsync(Mockito.any())).thenReturn(
                CompletableFuture.completedFuture(isolated));
        LoadBalanceResources stored = stub(LoadBalanceResources.class);
        LoadBalanceResources.BundleDataResources averages = stub(LoadBalanceResources.BundleDataResources.class);
        LoadBalanceResources.QuotaResources quotas = stub(LoadBalanceResources.QuotaResources.class);
        Mockito.when(resources.getLoadBalanceResources()).thenReturn(stored);
        Mockito.when(stored.getBundleDataResources()).thenReturn(averages);
        Mockito.when(stored.getQuotaResources()).thenReturn(quotas);
        Mockito.when(averages.getBundleData(Mockito.anyString())).thenReturn(
                CompletableFuture.completedFuture(Optional.empty()));
        Mockito.when(quotas.getQuota(Mockito.anyString())).thenReturn(
                CompletableFuture.completedFuture(Optional.empty()));
        PulsarAdmin admin = stub(PulsarAdmin.class);
        Namespaces requests = stub(Namespaces.class);
        Mockito.when(admin.namespaces()).thenReturn(requests);
        Mockito.when(pulsar.getAdminClient()).thenReturn(admin);
        Mockito.doAnswer(call -> {
            unloads.addObject().put("bundle", call.getArgument(0) + "/" + call.getArgument(1))
                    .put("destination", call.<String>getArgument(2));
            return null;
        }).when(requests).unloadNamespaceBundle(Mockito.anyString(), Mockito.anyString(), Mockito.anyString());
        return pulsar;
    }

    private static Optional<LocalPolicies> policies(JsonNode groups, Object namespace) {
        String group = groups.has(namespace.toString()) ? groups.get(namespace.toString()).asText() : null;
        return Optional.of(new LocalPolicies(null, null, group));
    }

    private static Optional<NamespaceIsolationPolicies> isolation(JsonNode given) {
        Map<String, NamespaceIsolationDataImpl> policies = new LinkedHashMap<>();
        for (JsonNode one : given) {
            Map<String, String> limits = Map.of("min_limit", one.get("min").asText(), "usage_threshold", "100");
            policies.put(one.get("name").asText(), NamespaceIsolationDataImpl.builder()
                    .namespaces(Config.texts(one.get("namespaces")))
                    .primary(Config.texts(one.get("primary")))
                    .secondary(Config.texts(one.get("secondary")))
                    .autoFailoverPolicy(AutoFailoverPolicyData.builder()
                            .policyType(AutoFailoverPolicyType.min_available).parameters(limits).build())
                    .build());
        }
        return policies.isEmpty() ? Optional.empty() : Optional.of(new NamespaceIsolationPolicies(policies));
    }

    private void fill(JsonNode input) throws Exception {
        each(input.path("bundleData"), (name, data) -> loadData.getBundleData().put(name, bundleData(data)));
        NamespaceBundleStats defaults =
                (NamespaceBundleStats) Fields.get(manager, "defaultStats");
        defaults.msgRateIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        defaults.msgRateOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        defaults.msgThroughputIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        defaults.msgThroughputOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        BundleRangeCache ranges =
                (BundleRangeCache) Fields.get(manager, "brokerToNamespaceToBundleRange");
        List<String> registered = new ArrayList<>();
        each(input.get("brokers"), (name, one) -> {
            if (one.path("registered").asBoolean(true)) {
                registered.add(name);
            }
            if (one.path("reports").asBoolean(true)) {
                LocalBrokerData report = report(name, one);
                reports.put(name, report);
                BrokerData data = new BrokerData(report);
                TimeAverageBrokerData averages = new TimeAverageBrokerData();
                averages.reset(report.getLastStats().keySet(), loadData.getBundleData(), defaults);
                data.setTimeAverageData(averages);
                loadData.getBrokerData().put(name, data);
                ranges.reloadFromBundles(name, report.getLastStats().keySet().stream());
            }
        });
        @SuppressWarnings("unchecked")
        LockManager<LocalBrokerData> locks = stub(LockManager.class);
        Mockito.when(locks.listLocks(Mockito.anyString())).thenAnswer(call ->
                CompletableFuture.completedFuture(new ArrayList<>(registered)));
        Fields.set(manager, "brokersData", locks);
    }

    private static LocalBrokerData report(String name, JsonNode one) {
        LocalBrokerData report = new LocalBrokerData();
        report.setCpu(usage(one.path("cpu")));
        report.setMemory(usage(one.path("memory")));
        report.setDirectMemory(usage(one.path("directMemory")));
        report.setBandwidthIn(usage(one.path("bandwidthIn")));
        report.setBandwidthOut(usage(one.path("bandwidthOut")));
        report.setMsgRateIn(one.path("msgRateIn").asDouble());
        report.setMsgRateOut(one.path("msgRateOut").asDouble());
        report.setNumTopics(one.path("topics").asInt());
        report.setPersistentTopicsEnabled(one.path("persistent").asBoolean(true));
        report.setNonPersistentTopicsEnabled(true);
        report.setBrokerVersionString(one.path("version").isTextual() ? one.get("version").asText() : null);
        report.setLoadManagerClassName(one.path("class").isTextual() ? one.get("class").asText() : null);
        Map<String, NamespaceBundleStats> stats = new java.util.concurrent.ConcurrentHashMap<>();
        one.path("bundles").forEach(bundle -> stats.put(bundle.asText(), new NamespaceBundleStats()));
        report.setLastStats(stats);
        report.setBundles(new java.util.HashSet<>(stats.keySet()));
        return report;
    }

    private static ResourceUsage usage(JsonNode given) {
        return new ResourceUsage(given.path(0).asDouble(), given.path(1).asDouble());
    }

    private static BundleData bundleData(JsonNode given) {
        BundleData data = new BundleData(10, 1000);
        data.setTopics(given.path("topics").asInt());
        data.setShortTermData(average(given.path("short"), 10));
        data.setLongTermData(average(given.path("long"), 1000));
        return data;
    }

    private static TimeAverageMessageData average(JsonNode given, int window) {
        TimeAverageMessageData average = new TimeAverageMessageData(window);
        average.setMsgRateIn(given.path(0).asDouble());
        average.setMsgRateOut(given.path(1).asDouble());
        average.setMsgThroughputIn(given.path(2).asDouble());
        average.setMsgThroughputOut(given.path(3).asDouble());
        return average;
    }

    // The requests

    private ArrayNode answer(JsonNode requests) throws Exception {
        ArrayNode answers = Oracle.JSON.createArrayNode();
        for (JsonNode request : requests) {
            calls.clear();
            ObjectNode answer = answers.addObject();
            try {
                switch (request.get("do").asText()) {
                    case "select" -> selected(answer, select(bundle(request.get("bundle").asText())));
                    case "lookup" -> selected(answer,
                            manager.selectBrokerForAssignment(bundle(request.get("bundle").asText())));
                    case "may-leave" -> mayLeave(answer, request);
                    case "shed" -> shed(answer, request);
                    case "refresh" -> refresh();
                    default -> throw new IllegalArgumentException(request.toString());
                }
            } catch (RuntimeException error) {
                answer.put("error", error.getClass().getSimpleName()); if (System.getProperty("trace") != null) { error.printStackTrace(); }
            }
            answer.set("calls", Oracle.JSON.valueToTree(calls));
            remembered(answer);
        }
        return answers;
    }

    private static void selected(ObjectNode answer, Optional<String> broker) {
        answer.put("selected", broker.orElse(null));
    }

    @SuppressWarnings("unchecked")
    private Optional<String> select(NamespaceBundle bundle) throws Exception {
        Method method = ModularLoadManagerImpl.class.getDeclaredMethod("selectBroker", ServiceUnitId.class);
        return (Optional<String>) invoke(method, bundle);
    }

    private void mayLeave(ObjectNode answer, JsonNode request) {
        String name = request.get("bundle").asText();
        String namespace = name.substring(0, name.lastIndexOf('/'));
        String range = name.substring(name.lastIndexOf('/') + 1);
        String broker = request.get("broker").asText();
        answer.put("isolation", manager.shouldNamespacePoliciesUnload(namespace, range, broker));
        answer.put("antiAffinity", manager.shouldAntiAffinityNamespaceUnload(namespace, range, broker));
    }

    private void shed(ObjectNode answer, JsonNode request) {
        chosen.clear();
        unloads.removeAll();
        loadData.getRecentlyUnloadedBundles().clear();
        each(request.get("unload"), (broker, bundles) ->
                bundles.forEach(bundle -> chosen.put(broker, bundle.asText())));
        try {
            manager.doLoadShedding();
        } finally {
            answer.set("unloads", unloads.deepCopy());
            answer.set("recentlyUnloaded",
                    Oracle.JSON.valueToTree(new TreeSet<>(loadData.getRecentlyUnloadedBundles().keySet())));
        }
    }

    private void refresh() throws Exception {
        invoke(ModularLoadManagerImpl.class.getDeclaredMethod("updateBundleData"));
    }

    private void remembered(ObjectNode answer) throws Exception {
        answer.set("promised", Oracle.JSON.valueToTree(new TreeMap<>(
                (Map<?, ?>) Fields.get(manager, "preallocatedBundleToBroker"))));
        Map<String, String> preallocated = new TreeMap<>();
        loadData.getBrokerData().forEach((broker, data) ->
                data.getPreallocatedBundleData().keySet().forEach(bundle -> preallocated.put(bundle, broker)));
        answer.set("preallocated", Oracle.JSON.valueToTree(preallocated));
        Object strategy = Fields.get(manager, "placementStrategy");
        if (strategy instanceof LeastResourceUsageWithWeight) {
            answer.set("averages", Oracle.JSON.valueToTree(
                    Fields.of(LeastResourceUsageWithWeight.class, "brokerAvgResourceUsageWithWeight").get(strategy)));
        }
    }

    // Strategies that write down what they are asked

    private ModularLoadManagerStrategy recorded(String name) {
        return switch (name.substring(name.lastIndexOf('.') + 1)) {
            case "LeastLongTermMessageRate" -> new LeastLongTermMessageRate() {
                @Override
                public synchronized Optional<String> selectBroker(Set<String> candidates, BundleData bundle, LoadData data,
                        ServiceConfiguration conf) {
                    return record(LeastLongTermMessageRate.class, this, candidates,
                            () -> super.selectBroker(candidates, bundle, data, conf));
                }
            };
            case "LeastResourceUsageWithWeight" -> new LeastResourceUsageWithWeight() {
                @Override
                public synchronized Optional<String> selectBroker(Set<String> candidates, BundleData bundle, LoadData data,
                        ServiceConfiguration conf) {
                    return record(LeastResourceUsageWithWeight.class, this, candidates,
                            () -> super.selectBroker(candidates, bundle, data, conf));
                }
            };
            case "RoundRobinBrokerSelector" -> new RoundRobinBrokerSelector() {
                @Override
                public Optional<String> selectBroker(Set<String> candidates, BundleData bundle, LoadData data,
                        ServiceConfiguration conf) {
                    return record(RoundRobinBrokerSelector.class, this, candidates,
                            () -> super.selectBroker(candidates, bundle, data, conf));
                }
            };
            case "AvgShedder" -> new AvgShedder() {
                @Override
                public Optional<String> selectBroker(Set<String> candidates, BundleData bundle, LoadData data,
                        ServiceConfiguration conf) {
                    return record(AvgShedder.class, this, candidates,
                            () -> super.selectBroker(candidates, bundle, data, conf));
                }
            };
            default -> throw new IllegalArgumentException(name);
        };
    }

    private Optional<String> record(Class<?> type, Object strategy, Set<String> candidates,
            java.util.function.Supplier<Optional<String>> real) {
        ObjectNode call = Oracle.JSON.createObjectNode().put("strategy", type.getSimpleName());
        call.set("candidates", Oracle.JSON.valueToTree(new ArrayList<>(candidates)));
        calls.add(call);
        Optional<String> answer = real.get();
        call.put("answer", answer.orElse(null));
        try {
            call.set("best", Oracle.JSON.valueToTree(new ArrayList<>((List<?>) Fields.of(type, "bestBrokers").get(strategy))));
        } catch (NoSuchFieldException error) {
            call.set("best", null);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
        return answer;
    }

    // Tools

    private interface Entry {
        void accept(String name, JsonNode value);
    }

    private static void each(JsonNode object, Entry entry) {
        for (Iterator<Map.Entry<String, JsonNode>> all = object.fields(); all.hasNext();) {
            Map.Entry<String, JsonNode> one = all.next();
            entry.accept(one.getKey(), one.getValue());
        }
    }

    private NamespaceBundle bundle(String name) {
        String[] ends = name.substring(name.lastIndexOf('/') + 1).split("_");
        Range<Long> range = NamespaceBundleFactory.getRange(Long.decode(ends[0]), Long.decode(ends[1]));
        return new NamespaceBundle(
                org.apache.pulsar.common.naming.NamespaceName.get(name.substring(0, name.lastIndexOf('/'))), range, factory);
    }

    private Object invoke(Method method, Object... args) throws Exception {
        method.setAccessible(true);
        try {
            return method.invoke(manager, args);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw error;
        }
    }

    private static <T> T stub(Class<T> type) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly());
    }
}
