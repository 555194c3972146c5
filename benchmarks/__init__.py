"""Workloads written as plain JAX programs, run under Styrax and under JAX side by side."""
