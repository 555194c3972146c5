"""Ready-made kernels. JAX's are written for one accelerator each; there are none for CPUs."""
