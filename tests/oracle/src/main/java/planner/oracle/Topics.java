package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.hash.Hashing;
import java.util.List;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.BundlesData;
import org.apache.pulsar.common.policies.data.PoliciesUtil;
import org.mockito.Mockito;

/** In which bundle topics lie. */
final class Topics {
    private Topics() {}

    static ObjectNode answer(ServiceConfiguration config, JsonNode input) {
        PulsarService pulsar = Mockito.mock(PulsarService.class, Mockito.RETURNS_DEEP_STUBS);
        Mockito.doReturn(config).when(pulsar).getConfiguration();
        Mockito.doReturn(config).when(pulsar).getConfig();
        NamespaceBundleFactory factory = NamespaceBundleFactory.createFactory(pulsar, Hashing.crc32());
        BundlesData data = PoliciesUtil.getBundles(input.path("numBundles").asInt(1));
        if (input.has("boundaries")) {
            List<String> boundaries = Config.texts(input.get("boundaries"));
            data = BundlesData.builder().boundaries(boundaries).numBundles(boundaries.size() - 1).build();
        }
        NamespaceBundles bundles = factory.getBundles(NamespaceName.get(input.get("namespace").asText()), data);
        ObjectNode answer = Oracle.JSON.createObjectNode();
        answer.set("boundaries", Oracle.JSON.valueToTree(data.getBoundaries()));
        answer.put("numBundles", data.getNumBundles());
        ArrayNode assignments = answer.putArray("assignments");
        for (String topic : Config.texts(input.get("topics"))) {
            ObjectNode told = assignments.addObject().put("topic", topic);
            try {
                TopicName name = TopicName.get(topic);
                told.put("fullName", name.toString());
                told.put("partitionIndex", name.getPartitionIndex());
                told.put("hash", factory.getLongHashCode(name.toString()));
                NamespaceBundle bundle = bundles.findBundle(name);
                told.put("bundle", bundle.toString());
                told.put("bundleRange", bundle.getBundleRange());
            } catch (RuntimeException refused) {
                told.put("error", refused.getClass().getSimpleName());
            }
        }
        return answer;
    }
}
