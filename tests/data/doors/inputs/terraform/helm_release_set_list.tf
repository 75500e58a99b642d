resource "helm_release" "pulsar" {
  name = "pulsar"
  set = [
    { name = "broker.configData.loadBalancerSheddingEnabled", value = "false" },
    { name = "broker.replicaCount", value = 3 },
    { name = "broker.configData.PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes", value = "3", type = "string" }
  ]
}
