"""History: what clusters looked like over days, as Parquet, and how raw recordings are turned into it."""
