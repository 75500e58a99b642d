/* Namespaces of the shop;
   limits in a period of a second. */
resource "pulsar_tenant" "shop" {
  tenant           = "shop"
  allowed_clusters = ["east"]
}

resource "pulsar_namespace" "orders" {
  tenant    = "shop"
  namespace = "orders"

  namespace_config {
    anti_affinity        = "red"
    replication_clusters = ["east"]
  }

  dispatch_rate {
    dispatch_msg_throttling_rate  = 1000
    rate_period_seconds           = 1
    dispatch_byte_throttling_rate = -1
  }
}
