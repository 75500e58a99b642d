resource "kubernetes_config_map_v1" "broker" {
  metadata {
    name      = "pulsar-broker"
    namespace = "pulsar"
  }
  data = {
    PULSAR_MEM                        = "-Xmx4g"
    loadBalancerSheddingEnabled       = "true"
    "loadBalancerNamespaceBundleMaxTopics" = "500"
    PULSAR_PREFIX_maxUnloadPercentage = 0.4
  }
}
