locals {
  broker_config = {
    loadBalancerSheddingEnabled         = "true" // dynamic, too
    loadBalancerSheddingIntervalMinutes = "3"
    loadBalancerEnabled                 = true
  }
}
