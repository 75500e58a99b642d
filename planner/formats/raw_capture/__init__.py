"""A raw capture - what the admin API, the metadata store and the metrics of a cluster answered - as a snapshot."""
