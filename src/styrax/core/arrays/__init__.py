"""Arrays, devices and shardings, and the registry of backends."""
