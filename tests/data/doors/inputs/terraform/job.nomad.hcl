job "mq" {
  group "broker" {
    task "broker" {
      env {
        loadBalancerEnabled                 = "true"
        loadBalancerSheddingIntervalMinutes = "5"
      }
    }
  }
}
