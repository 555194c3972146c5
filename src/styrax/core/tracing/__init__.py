"""Tracing: who interprets a primitive, writing programs down, the user's line, JAX's exceptions."""
