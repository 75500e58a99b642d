resource "helm_release" "pulsar" {
  values = [<<-EOT
    broker:
      configData:
        loadBalancerNamespaceMaximumBundles: "256"
  EOT
  ]
}
