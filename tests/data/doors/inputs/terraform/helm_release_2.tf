# the cluster of the shop
resource "helm_release" "pulsar" {
  name       = "pulsar"
  repository = "https://pulsar.apache.org/charts"
  chart      = "pulsar"
  version    = "4.2.0"
  namespace  = kubernetes_namespace.pulsar.metadata[0].name

  values = [
    <<-EOT
    broker:
      replicaCount: 3
      configData:
        loadBalancerLoadSheddingStrategy: org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder
        loadBalancerBrokerThresholdShedderPercentage: "15"
    proxy:
      configData:
        loadBalancerEnabled: "false"
    EOT
  ]

  set {
    name  = "broker.configData.loadBalancerSheddingIntervalMinutes" # minutes
    value = "2"
  }

  set {
    name  = "broker.configData.loadBalancerNamespaceMaximumBundles"
    value = 256
  }
}
