"""The best plan: fewest disconnections, how far from the best possible it is, and what Pulsar will make of it."""
