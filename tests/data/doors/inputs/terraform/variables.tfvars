broker_replicas = 5
broker_config = {
  loadBalancerEnabled                 = "true"
  loadBalancerSheddingIntervalMinutes = "5" # minutes
  loadBalancerLoadSheddingStrategy    = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
}
