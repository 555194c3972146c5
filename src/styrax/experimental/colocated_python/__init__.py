"""Python functions and objects on the hosts of devices: the CPU's host is the process itself."""

from .func import colocated_cpu_devices, colocated_python, colocated_python_class

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
