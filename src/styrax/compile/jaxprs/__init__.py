"""Passes over jaxprs: jaxpr in, jaxpr out."""
