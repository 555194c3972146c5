"""From a jaxpr to operations: what lowering rules are given, and what they give."""
