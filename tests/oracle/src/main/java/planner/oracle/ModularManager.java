package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.Range;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
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
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LeaderElectionService;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.BrokerLoadManagerClassFilter;
import org.apache.pulsar.broker.loadbalance.impl.BrokerVersionFilter;
import org.apache.pulsar.broker.loadbalance.impl.BundleRangeCache;
import org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate;
import org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerWrapper;
import org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.LoadBalanceResources;
import org.apache.pulsar.broker.resources.LocalPoliciesResources;
import org.apache.pulsar.broker.resources.NamespaceResources;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyData;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyType;
import org.apache.pulsar.common.policies.data.LocalPolicies;
import org.apache.pulsar.common.policies.impl.NamespaceIsolationPolicies;
import org.apache.pulsar.common.policies.data.NamespaceIsolationDataImpl;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.mockito.Mockito;

/**
 * The modular load manager of a leader: what it answers to requests for bundles, and what it remembers.
 *
 * <p>The load manager, its filters and its strategies are the official classes; what surrounds them in a broker is a
 * stand-in that gives the case's data.
 */
final class ModularManager {
    private final ServiceConfiguration conf;
    private final ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
    private final LoadManager requests = new ModularLoadManagerWrapper(manager);
    private final NamespaceBundleFactory factory = stub(NamespaceBundleFactory.class);
    private final LoadData loadData;
    private final Map<String, LocalBrokerData> reports = new LinkedHashMap<>();
    private final List<String> registered = new ArrayList<>();
    private final Set<NamespaceBundle> ownedByLeader = new LinkedHashSet<>();
    private final List<ObjectNode> calls = new ArrayList<>();

    static ObjectNode answer(ServiceConfiguration config, JsonNode input) throws Exception {
        return Oracle.JSON.createObjectNode()
                .set("requests", new ModularManager(config, input).answer(input.get("requests")));
    }

    private ModularManager(ServiceConfiguration config, JsonNode input) throws Exception {
        this(config, input, null);
    }

    /** Takes the strategy that sheds, for whole cycles, which are not written down; null for single requests. */
    private ModularManager(ServiceConfiguration config, JsonNode input, LoadSheddingStrategy shedding) throws Exception {
        conf = config;
        conf.setClusterName("c");
        loadData = (LoadData) Fields.get(manager, "loadData");
        PulsarService pulsar = pulsar(input);
        Fields.set(manager, "pulsar", pulsar);
        Fields.set(manager, "conf", conf);
        conf.setLoadBalancerAutoBundleSplitEnabled(false);
        Fields.set(manager, "pulsarResources", pulsar.getPulsarResources());
        Fields.set(manager, "policies", new SimpleResourceAllocationPolicies(pulsar));
        String placement = conf.getLoadBalancerLoadPlacementStrategy();
        Fields.set(manager, "placementStrategy", shedding instanceof AvgShedder ? shedding
                : shedding != null ? ModularPlacements.strategy(placement) : recorded(placement));
        Fields.set(manager, "sheddingExcludedNamespaceSelectionStrategy", recorded("RoundRobinBrokerSelector"));
        @SuppressWarnings("unchecked")
        List<BrokerFilter> filters = (List<BrokerFilter>) Fields.get(manager, "filterPipeline");
        filters.add(new BrokerLoadManagerClassFilter());
        filters.add(new BrokerVersionFilter());
        Map<String, String> domains = new LinkedHashMap<>();
        each(input.path("domains"), (name, brokers) -> brokers.forEach(broker -> domains.put(broker.asText(), name)));
        Fields.set(manager, "brokerToFailureDomainMap", conf.isFailureDomainsEnabled() ? domains : Map.of());
        Fields.set(manager, "loadSheddingStrategy", shedding != null ? shedding : stub(LoadSheddingStrategy.class));
        fill(input);
        if (shedding instanceof AvgShedder pair) {
            pair.onActiveBrokersChange(new LinkedHashSet<>(registered));
        }
    }

    /** Prepares a whole shedding cycle, with the placement of every bundle; it returns how many are unloaded. */
    static Callable<Integer> cycle(ServiceConfiguration config, JsonNode input, Supplier<LoadSheddingStrategy> strategy)
            throws Exception {
        ModularManager leader = new ModularManager(config, input, strategy.get());
        PulsarService stubs = (PulsarService) Fields.get(leader.manager, "pulsar");
        PulsarService pulsar = Surroundings.of(leader.conf,
                stubs.getPulsarResources().getLoadBalanceResources(), (space, range) -> leader.bundle(space + "/" + range));
        Fields.set(leader.manager, "pulsar", pulsar);
        Fields.set(leader.manager, "pulsarResources", pulsar.getPulsarResources());
        Fields.set(leader.manager, "policies", new SimpleResourceAllocationPolicies(pulsar));
        Fields.set(leader.manager, "brokersData", Surroundings.locks(leader.registered));
        strategy.get().findBundlesForUnloading(leader.loadData, leader.conf); // a leader's data are not new to it
        return () -> {
            leader.manager.doLoadShedding();
            return leader.loadData.getRecentlyUnloadedBundles().size();
        };
    }

    // The cluster

    private PulsarService pulsar(JsonNode input) throws Exception {
        PulsarService pulsar = stub(PulsarService.class);
        Mockito.when(pulsar.getConfiguration()).thenReturn(conf);
        Mockito.when(factory.getBundle(Mockito.anyString(), Mockito.anyString())).thenAnswer(call ->
                bundle(call.<String>getArgument(0) + "/" + call.<String>getArgument(1)));
        NamespaceService namespaces = stub(NamespaceService.class);
        Mockito.when(namespaces.getNamespaceBundleFactory()).thenReturn(factory);
        Mockito.when(namespaces.getOwnedServiceUnits()).thenReturn(ownedByLeader);
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
        LeaderElectionService election = stub(LeaderElectionService.class);
        Mockito.when(election.isLeader()).thenReturn(true);
        Mockito.when(pulsar.getLeaderElectionService()).thenReturn(election);
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
        LoadBalanceResources.BrokerTimeAverageDataResources sums =
                stub(LoadBalanceResources.BrokerTimeAverageDataResources.class);
        Mockito.when(stored.getBrokerTimeAverageDataResources()).thenReturn(sums);
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
        LoadData given = Loads.modular(input.get("loadData"));
        loadData.getBundleData().putAll(given.getBundleData());
        NamespaceBundleStats defaults = (NamespaceBundleStats) Fields.get(manager, "defaultStats");
        defaults.msgRateIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        defaults.msgRateOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        defaults.msgThroughputIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        defaults.msgThroughputOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        BundleRangeCache ranges = (BundleRangeCache) Fields.get(manager, "brokerToNamespaceToBundleRange");
        given.getBrokerData().forEach((name, data) -> {
            Set<String> bundles = data.getLocalData().getLastStats().keySet();
            reports.put(name, data.getLocalData());
            data.getTimeAverageData().reset(bundles, loadData.getBundleData(), defaults);
            loadData.getBrokerData().put(name, data);
            ranges.reloadFromBundles(name, bundles.stream());
        });
        now(input);
        @SuppressWarnings("unchecked")
        LockManager<LocalBrokerData> locks = stub(LockManager.class);
        Mockito.when(locks.listLocks(Mockito.anyString())).thenAnswer(call ->
                CompletableFuture.completedFuture(new ArrayList<>(registered)));
        Mockito.when(locks.readLock(Mockito.anyString())).thenAnswer(call -> {
            String path = call.getArgument(0);
            return CompletableFuture.completedFuture(
                    Optional.ofNullable(reports.get(path.substring(path.lastIndexOf('/') + 1))));
        });
        Fields.set(manager, "brokersData", locks);
        Fields.set(manager, "knownBrokers", new java.util.HashSet<>(registered));
    }

    private void now(JsonNode given) {
        registered.clear();
        registered.addAll(Config.texts(given.get("registered")));
        ownedByLeader.clear();
        given.path("ownedByLeader").forEach(name -> ownedByLeader.add(bundle(name.asText())));
    }

    // The requests

    private ArrayNode answer(JsonNode requests) throws Exception {
        ArrayNode answers = Oracle.JSON.createArrayNode();
        for (JsonNode request : requests) {
            calls.clear();
            ObjectNode answer = answers.addObject();
            try {
                answer(answer, request);
            } catch (RuntimeException error) {
                answer.put("error", error.getClass().getSimpleName());
            }
            answer.set("calls", Oracle.JSON.valueToTree(calls));
            remembered(answer);
        }
        return answers;
    }

    private void answer(ObjectNode answer, JsonNode request) throws Exception {
        String name = request.path("bundle").asText();
        switch (request.get("do").asText()) {
            case "select" -> answer.put("selected", select(bundle(name)).orElse(null));
            case "lookup" -> answer.put("selected", requests.getLeastLoaded(bundle(name))
                    .map(unit -> unit.getResourceId().replaceFirst("https?://", "")).orElse(null));
            case "affinity" -> manager.setNamespaceBundleAffinity(name, request.get("broker").asText());
            case "may-leave" -> mayLeave(answer, name, request.get("broker").asText());
            case "refresh" -> refresh(answer, request);
            default -> throw new IllegalArgumentException(request.toString());
        }
    }

    @SuppressWarnings("unchecked")
    private Optional<String> select(NamespaceBundle bundle) throws Exception {
        Method method = ModularLoadManagerImpl.class.getDeclaredMethod("selectBroker", ServiceUnitId.class);
        return (Optional<String>) invoke(method, bundle);
    }

    private void mayLeave(ObjectNode answer, String name, String broker) {
        String namespace = name.substring(0, name.lastIndexOf('/'));
        String range = name.substring(name.lastIndexOf('/') + 1);
        answer.put("isolation", manager.shouldNamespacePoliciesUnload(namespace, range, broker));
        answer.put("antiAffinity", manager.shouldAntiAffinityNamespaceUnload(namespace, range, broker));
    }

    /** What the leader does when the list of brokers has changed, and each time new reports are there. */
    private void refresh(ObjectNode answer, JsonNode request) throws Exception {
        reports.clear();
        for (Map.Entry<String, JsonNode> one : request.get("brokers").properties()) {
            reports.put(one.getKey(), Loads.report(one.getValue()));
        }
        now(request);
        invoke(ModularLoadManagerImpl.class.getDeclaredMethod("reapDeadBrokerPreallocations", List.class), registered);
        manager.updateAll();
        answer.set("bundleData", Oracle.JSON.valueToTree(loadData.getBundleData()));
        answer.set("brokers", Oracle.JSON.valueToTree(new TreeSet<>(loadData.getBrokerData().keySet())));
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
            Supplier<Optional<String>> real) {
        ObjectNode call = Oracle.JSON.createObjectNode().put("strategy", type.getSimpleName());
        call.set("candidates", Oracle.JSON.valueToTree(new ArrayList<>(candidates)));
        calls.add(call);
        Optional<String> answer = real.get();
        call.put("answer", answer.orElse(null));
        boolean lists = answer.isPresent() && type.getSimpleName().startsWith("Least");
        try {
            call.set("best", lists ? Oracle.JSON.valueToTree(Fields.of(type, "bestBrokers").get(strategy)) : null);
        } catch (ReflectiveOperationException error) {
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
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call ->
                call.getMethod().getReturnType() == CompletableFuture.class
                        ? CompletableFuture.completedFuture(null) : Mockito.RETURNS_DEFAULTS.answer(call)));
    }
}
