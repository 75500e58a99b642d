package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.proto.ManagedLedgerInfo;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.service.AbstractTopic;
import org.apache.pulsar.broker.service.persistent.PersistentTopic;
import org.apache.pulsar.common.policies.data.HierarchyTopicPolicies;
import org.apache.pulsar.common.policies.data.Policies;
import org.apache.pulsar.common.policies.data.SubscriptionPolicies;
import org.apache.pulsar.common.policies.data.TopicPolicies;
import org.apache.pulsar.common.policies.data.impl.DispatchRateImpl;
import org.mockito.Mockito;

/** Which dispatch limit a topic takes, and how many entries are read for so many bytes. */
final class DispatchLimits {
    private static final String CLUSTER = "cluster";
    private static final String SUBSCRIPTION = "sub";

    private DispatchLimits() {}

    static ObjectNode precedence(ServiceConfiguration config, JsonNode input) throws Exception {
        AbstractTopic topic = Mockito.mock(PersistentTopic.class, Mockito.CALLS_REAL_METHODS);
        HierarchyTopicPolicies hierarchy = new HierarchyTopicPolicies();
        set(topic, "topicPolicies", hierarchy);
        for (String name : new String[] {"subscriptionPolicies", "globalSubscriptionPolicies", "localSubscriptionPolicies"}) {
            set(topic, name, new HashMap<>());
        }
        hierarchy.getDispatchRate().updateBrokerValue(ofBroker(topic, "dispatchRateInBroker", config));
        hierarchy.getSubscriptionDispatchRate().updateBrokerValue(ofBroker(topic, "subscriptionDispatchRateInBroker", config));
        hierarchy.getReplicatorDispatchRate().updateBrokerValue(ofBroker(topic, "replicatorDispatchRateInBroker", config));
        Policies namespace = new Policies();
        TopicPolicies local = new TopicPolicies();
        TopicPolicies global = new TopicPolicies();
        for (JsonNode policy : input.get("policies")) {
            String kind = policy.get("kind").asText();
            DispatchRateImpl rate = rate(policy.get("rate"));
            if (policy.get("scope").asText().equals("namespace")) {
                Map<String, DispatchRateImpl> map =
                        switch (kind) {
                            case "dispatch" -> namespace.topicDispatchRate;
                            case "subscription" -> namespace.subscriptionDispatchRate;
                            default -> namespace.replicatorDispatchRate;
                        };
                map.put(CLUSTER, rate);
                continue;
            }
            TopicPolicies target = policy.get("scope").asText().equals("global") ? global : local;
            if (!policy.get("subscription").asText().isEmpty()) {
                target.setSubscriptionPolicies(new HashMap<>(Map.of(SUBSCRIPTION, new SubscriptionPolicies(rate))));
            } else if (kind.equals("dispatch")) {
                target.setDispatchRate(rate);
            } else if (kind.equals("subscription")) {
                target.setSubscriptionDispatchRate(rate);
            } else {
                target.setReplicatorDispatchRate(rate);
            }
        }
        for (String name : new String[] {"Dispatch", "SubscriptionDispatch", "ReplicatorDispatch"}) {
            Method update = AbstractTopic.class.getDeclaredMethod("updateNamespace" + name + "Rate", Policies.class, String.class);
            update.setAccessible(true);
            update.invoke(topic, namespace, CLUSTER);
        }
        global.setIsGlobal(true);
        update(topic, local);
        update(topic, global);
        ObjectNode answer = Oracle.JSON.createObjectNode();
        answer.set("dispatch", json(topic.getDispatchRate()));
        answer.set("replicator", json(topic.getReplicatorDispatchRate()));
        answer.set("named", json(topic.getSubscriptionDispatchRate(SUBSCRIPTION)));
        answer.set("other", json(topic.getSubscriptionDispatchRate("other")));
        return answer;
    }

    /** Feeds topic policies in; the entry filters that are updated last need a whole broker, which is not here. */
    private static void update(AbstractTopic topic, TopicPolicies policies) throws Exception {
        Method update = AbstractTopic.class.getDeclaredMethod("updateTopicPolicy", TopicPolicies.class);
        update.setAccessible(true);
        try {
            update.invoke(topic, policies);
        } catch (InvocationTargetException raised) {
            boolean filters =
                    Arrays.stream(raised.getCause().getStackTrace())
                            .anyMatch(frame -> frame.getMethodName().equals("updateEntryFilters"));
            if (!filters) {
                throw raised;
            }
        }
    }

    static ObjectNode entries(ServiceConfiguration config, JsonNode input) throws Exception {
        NavigableMap<Long, ManagedLedgerInfo.LedgerInfo> ledgers = new TreeMap<>();
        Long open = input.has("open") ? input.get("open").asLong() : null;
        long openEntries = 0;
        long openBytes = 0;
        for (JsonNode ledger : input.get("ledgers")) {
            long id = ledger.get(0).asLong();
            ManagedLedgerInfo.LedgerInfo info = new ManagedLedgerInfo.LedgerInfo().setLedgerId(id);
            if (open != null && open == id) {
                openEntries = ledger.get(1).asLong();
                openBytes = ledger.get(2).asLong();
            } else {
                info.setEntries(ledger.get(1).asLong()).setSize(ledger.get(2).asLong());
            }
            ledgers.put(id, info);
        }
        Position position = PositionFactory.create(input.get("ledger").asLong(), input.get("entry").asLong());
        Method estimate =
                Class.forName("org.apache.bookkeeper.mledger.impl.EntryCountEstimator")
                        .getDeclaredMethod(
                                "internalEstimateEntryCountByBytesSize",
                                int.class,
                                long.class,
                                Position.class,
                                NavigableMap.class,
                                Long.class,
                                long.class,
                                long.class);
        estimate.setAccessible(true);
        Object count =
                estimate.invoke(
                        null,
                        input.get("maxEntries").asInt(),
                        input.get("maxBytes").asLong(),
                        position,
                        ledgers,
                        open,
                        openEntries,
                        openBytes);
        return Oracle.JSON.createObjectNode().put("entries", (int) count);
    }

    private static DispatchRateImpl ofBroker(AbstractTopic topic, String method, ServiceConfiguration config) throws Exception {
        Method asked = AbstractTopic.class.getDeclaredMethod(method, ServiceConfiguration.class);
        asked.setAccessible(true);
        return (DispatchRateImpl) asked.invoke(topic, config);
    }

    private static void set(AbstractTopic topic, String name, Object value) throws Exception {
        Field field = AbstractTopic.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(topic, value);
    }

    private static DispatchRateImpl rate(JsonNode rate) {
        return new DispatchRateImpl(
                rate.get(0).asInt(), rate.get(1).asLong(), rate.get(3).asBoolean(), rate.get(2).asInt());
    }

    private static ArrayNode json(DispatchRateImpl rate) {
        if (rate == null) {
            return null;
        }
        return Oracle.JSON
                .createArrayNode()
                .add(rate.getDispatchThrottlingRateInMsg())
                .add(rate.getDispatchThrottlingRateInByte())
                .add(rate.getRatePeriodInSecond())
                .add(rate.isRelativeToPublishRate());
    }
}
