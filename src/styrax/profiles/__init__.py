"""The files that recordings are kept in: traces for TensorBoard, and profiles of memory for pprof."""
