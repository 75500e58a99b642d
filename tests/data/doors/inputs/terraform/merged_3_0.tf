resource "helm_release" "mq" {
  name = "mq"
  values = [
    yamlencode({
      broker = {
        configData = merge({ defaultNumberOfNamespaceBundles = 8 }, {
          loadBalancerSheddingIntervalMinutes = "5"
          loadBalancerEnabled                 = "true"
        })
      }
      proxy = { configData = { loadBalancerEnabled = "false" } }
    }),
  ]
}
