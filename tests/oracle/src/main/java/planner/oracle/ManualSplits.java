package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import javax.ws.rs.WebApplicationException;
import javax.ws.rs.container.AsyncResponse;
import javax.ws.rs.core.Response;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.admin.v2.Namespaces;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerWrapper;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.manager.SplitManager;
import org.apache.pulsar.broker.loadbalance.extensions.models.Split;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerWrapper;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.namespace.OwnershipCache;
import org.apache.pulsar.broker.resources.TopicResources;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.mockito.Mockito;

/** A split asked for by the admin API. */
final class ManualSplits {
    private static final String REACHED = "the bundle was to be split";

    private ManualSplits() {}

    /** The REST resource and everything below it, up to the moment at which ownership of the children would change. */
    static ObjectNode manualSplit(ServiceConfiguration conf, JsonNode given) throws Exception {
        List<String> topics = Config.texts(given.get("topics"));
        PulsarService pulsar = Splits.broker(conf);
        NamespaceBundleFactory factory = Splits.factory(pulsar);
        String namespace = given.get("namespace").asText();
        Splits.boundaries(factory, namespace, given.get("boundaries"));
        TopicResources store = Mockito.mock(TopicResources.class, call -> Splits.done(topics));
        Mockito.when(pulsar.getPulsarResources().getTopicResources()).thenReturn(store);
        BrokerService brokerService = Mockito.mock(BrokerService.class);
        Mockito.when(brokerService.getTopicStats(Mockito.any())).thenReturn(Splits.topicStats(given));
        Mockito.when(pulsar.getBrokerService()).thenReturn(brokerService);

        NamespaceService service = Mockito.mock(NamespaceService.class, Mockito.CALLS_REAL_METHODS);
        Mockito.doAnswer(call -> {
            NamespaceBundle bundle = call.getArgument(0);
            return Splits.done(topics.stream().filter(topic -> bundle.includes(TopicName.get(topic))).toList());
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
                return call.getMethod().getReturnType() == CompletableFuture.class ? Splits.done(null) : null;
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
                algorithm.isTextual() ? algorithm.asText() : null, Splits.positions(given));
        try {
            return told(reply.get(Splits.PATIENCE_SECONDS, TimeUnit.SECONDS), answer);
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
            return call.getMethod().getReturnType() == CompletableFuture.class ? Splits.done(data) : data;
        }));
    }

    private static LoadManager extensible(PulsarService pulsar, ServiceConfiguration conf, ObjectNode answer)
            throws Exception {
        ExtensibleLoadManagerImpl manager =
                Mockito.mock(ExtensibleLoadManagerImpl.class, Mockito.CALLS_REAL_METHODS);
        Mockito.doReturn(Splits.done(Optional.of("b1:8080"))).when(manager).getOwnershipAsync(Mockito.any(), Mockito.any());
        ServiceUnitStateChannel channel = Mockito.mock(ServiceUnitStateChannel.class, call -> {
            if (call.getMethod().getName().equals("publishSplitEventAsync")) {
                Split split = call.getArgument(0);
                answer.put("accepted", split.serviceUnit());
                answer.set("children", Oracle.JSON.valueToTree(new TreeSet<>(split.splitServiceUnitToDestBroker().keySet())));
            }
            return call.getMethod().getReturnType() == CompletableFuture.class
                    ? Splits.done(null) : Mockito.RETURNS_DEFAULTS.answer(call);
        });
        SplitManager waiter = Mockito.mock(SplitManager.class, call -> Splits.done(null));
        Fields.set(manager, "pulsar", pulsar);
        Fields.set(manager, "conf", conf);
        Fields.set(manager, "serviceUnitStateChannel", channel);
        Fields.set(manager, "splitManager", waiter);
        return new ExtensibleLoadManagerWrapper(manager);
    }
}
