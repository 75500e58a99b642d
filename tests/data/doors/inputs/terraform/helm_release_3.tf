resource "helm_release" "pulsar" {
  name  = "pulsar"
  chart = "sn-platform"

  set = [
    {
      name  = "broker.configData.PULSAR_PREFIX_loadBalancerSheddingEnabled"
      value = "true"
    },
    { name = "broker.configData.defaultNumberOfNamespaceBundles", value = "16" },
  ]

  values = [yamlencode({
    broker = {
      configData = {
        loadBalancerAutoBundleSplitEnabled = true
        "loadBalancerBrokerOverloadedThresholdPercentage" = 80
      }
    }
  })]
}
