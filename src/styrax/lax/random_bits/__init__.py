"""Random bits: counters, keys, generators."""
