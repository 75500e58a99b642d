"""Shadow mode: predicts a watched cluster, and compares with what it did."""
