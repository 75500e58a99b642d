"""Replay: Spark, and the Java it runs on."""
