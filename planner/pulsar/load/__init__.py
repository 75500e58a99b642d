"""What brokers report of their load, and what is computed of it: usage, averages, top bundles, policies."""
