package planner.oracle;

import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LeaderElectionService;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.LoadBalanceResources;
import org.apache.pulsar.broker.resources.LocalPoliciesResources;
import org.apache.pulsar.broker.resources.NamespaceResources;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.policies.data.LocalPolicies;
import org.apache.pulsar.common.policies.impl.NamespaceIsolationPolicies;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.objenesis.ObjenesisStd;

/**
 * What surrounds a leader's load manager in a cluster without policies, for measuring: it answers at once.
 *
 * <p>Mocks would take longer than what is measured. A broker takes longer, too: it asks the caches of its metadata store.
 */
final class Surroundings {
    private static final ObjenesisStd MAKER = new ObjenesisStd();

    private Surroundings() {}

    static PulsarService of(ServiceConfiguration conf, LoadBalanceResources stored,
            BiFunction<String, String, NamespaceBundle> bundles) {
        Factory factory = MAKER.newInstance(Factory.class);
        factory.bundles = bundles;
        Service namespaces = MAKER.newInstance(Service.class);
        namespaces.factory = factory;
        Spaces spaces = MAKER.newInstance(Spaces.class);
        spaces.isolation = MAKER.newInstance(Isolation.class);
        Resources resources = MAKER.newInstance(Resources.class);
        resources.spaces = spaces;
        resources.local = MAKER.newInstance(Local.class);
        resources.stored = stored;
        Broker broker = MAKER.newInstance(Broker.class);
        broker.conf = conf;
        broker.election = MAKER.newInstance(Leader.class);
        broker.namespaces = namespaces;
        broker.resources = resources;
        Namespaces unloads = idle(Namespaces.class, null);
        broker.admin = idle(PulsarAdmin.class, unloads);
        return broker;
    }

    /** Returns what lists the registered brokers. */
    @SuppressWarnings("unchecked")
    static LockManager<LocalBrokerData> locks(List<String> registered) {
        return idle(LockManager.class, CompletableFuture.completedFuture(registered));
    }

    /** Returns an object that does nothing, and always answers the same. */
    private static <T> T idle(Class<T> type, Object answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, given) ->
                answer));
    }

    private static class Broker extends PulsarService {
        private ServiceConfiguration conf;
        private LeaderElectionService election;
        private NamespaceService namespaces;
        private PulsarResources resources;
        private PulsarAdmin admin;

        Broker() {
            super(null);
        }

        @Override
        public ServiceConfiguration getConfiguration() {
            return conf;
        }

        @Override
        public LeaderElectionService getLeaderElectionService() {
            return election;
        }

        @Override
        public NamespaceService getNamespaceService() {
            return namespaces;
        }

        @Override
        public PulsarResources getPulsarResources() {
            return resources;
        }

        @Override
        public PulsarAdmin getAdminClient() {
            return admin;
        }
    }

    private static class Leader extends LeaderElectionService {
        Leader() {
            super(null, null, null, null);
        }

        @Override
        public boolean isLeader() {
            return true;
        }
    }

    private static class Service extends NamespaceService {
        private NamespaceBundleFactory factory;

        Service() {
            super(null);
        }

        @Override
        public NamespaceBundleFactory getNamespaceBundleFactory() {
            return factory;
        }
    }

    private static class Factory extends NamespaceBundleFactory {
        private BiFunction<String, String, NamespaceBundle> bundles;

        Factory() {
            super(null, null);
        }

        @Override
        public NamespaceBundle getBundle(String namespace, String range) {
            return bundles.apply(namespace, range);
        }
    }

    private static class Resources extends PulsarResources {
        private NamespaceResources spaces;
        private LocalPoliciesResources local;
        private LoadBalanceResources stored;

        Resources() {
            super(null, null);
        }

        @Override
        public NamespaceResources getNamespaceResources() {
            return spaces;
        }

        @Override
        public LocalPoliciesResources getLocalPolicies() {
            return local;
        }

        @Override
        public LoadBalanceResources getLoadBalanceResources() {
            return stored;
        }
    }

    private static class Spaces extends NamespaceResources {
        private IsolationPolicyResources isolation;

        Spaces() {
            super(null, 0);
        }

        @Override
        public IsolationPolicyResources getIsolationPolicies() {
            return isolation;
        }
    }

    private static class Isolation extends NamespaceResources.IsolationPolicyResources {
        Isolation() {
            super(null, 0);
        }

        @Override
        public Optional<NamespaceIsolationPolicies> getIsolationDataPolicies(String cluster) {
            return Optional.empty();
        }

        @Override
        public CompletableFuture<Optional<NamespaceIsolationPolicies>> getIsolationDataPoliciesAsync(String cluster) {
            return CompletableFuture.completedFuture(Optional.empty());
        }
    }

    private static class Local extends LocalPoliciesResources {
        Local() {
            super(null, 0);
        }

        @Override
        public Optional<LocalPolicies> getLocalPolicies(NamespaceName namespace) {
            return Optional.empty();
        }

        @Override
        public CompletableFuture<Optional<LocalPolicies>> getLocalPoliciesAsync(NamespaceName namespace) {
            return CompletableFuture.completedFuture(Optional.empty());
        }
    }
}
