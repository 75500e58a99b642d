resource "aws_ecs_task_definition" "broker" {
  family = "broker"
  container_definitions = jsonencode([
    {
      name = "broker"
      environment = [
        { name = "PULSAR_PREFIX_loadBalancerEnabled", value = "true" },
        { name = "PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes", value = "5" }
      ]
    }
  ])
}
