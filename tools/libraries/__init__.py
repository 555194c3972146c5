"""The own tests of libraries written for JAX, under the drop-in and under JAX: `make libraries`."""
