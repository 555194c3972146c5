"""Which processes a program consists of, where a launcher has said so in the environment."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

PORTS = 1 << 12  # the last of all, of which a job has one by its number


class Cluster(NamedTuple):
    """A launcher's processes: how the coordinator's address is found, how many they are, the number of this one, and
    that among those of its host."""

    address: Callable[[], str]
    processes: int
    number: int
    local: int | None = None


def port_of(job: int) -> int:
    """A port for a job."""
    return job % PORTS + 65536 - PORTS


def first_host(nodes: str) -> str:
    """The first of Slurm's list of hosts, as in `node[001-003,17],other`."""
    found = re.match(r"([^,\[]+)(?:\[(\w+))?", nodes)
    return "" if found is None else found[1] + (found[2] or "")


def _number(env: Mapping[str, str], variable: str) -> int | None:
    return int(env[variable]) if variable in env else None


def slurm(env: Mapping[str, str]) -> Cluster | None:
    """Processes that `srun` has started."""
    if not all(name in env for name in ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID")):
        return None

    def address() -> str:
        return f"{first_host(env['SLURM_STEP_NODELIST'])}:{port_of(int(env['SLURM_JOB_ID']))}"

    return Cluster(address, int(env["SLURM_NTASKS"]), int(env["SLURM_PROCID"]), _number(env, "SLURM_LOCALID"))


def open_mpi(env: Mapping[str, str]) -> Cluster | None:
    """Processes that Open MPI's `mpirun` has started. RuntimeError where its address is none."""
    uri = env.get("OMPI_MCA_orte_hnp_uri")
    if uri is None:
        return None

    def address() -> str:
        found = re.match(r"(\d+)\.\d+;tcp[46]?://\[?([^,;:\]]+)", uri)
        if found is None:
            raise RuntimeError("Could not parse coordinator IP address from Open MPI environment.")
        return f"{found[2]}:{port_of(int(found[1]) >> 12)}"

    return Cluster(address, int(env["OMPI_COMM_WORLD_SIZE"]), int(env["OMPI_COMM_WORLD_RANK"]),
                   _number(env, "OMPI_COMM_WORLD_LOCAL_RANK"))


def process_manager(env: Mapping[str, str]) -> Cluster | None:
    """Processes of MPICH's `mpirun`: on one host they find each other by its process, on several through MPI."""
    if "PMI_RANK" not in env or "PMI_SIZE" not in env:
        return None

    def address() -> str:
        if env.get("MPI_LOCALNRANKS") == env["PMI_SIZE"]:
            return f"127.0.0.1:{port_of(os.getppid())}"
        return through_mpi()

    return Cluster(address, int(env["PMI_SIZE"]), int(env["PMI_RANK"]), _number(env, "MPI_LOCALRANKID"))


def mpi4py(env: Mapping[str, str]) -> Cluster | None:
    """Processes of any MPI, where `mpi4py` is installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    from mpi4py import MPI  # type: ignore[import-not-found]

    world = MPI.COMM_WORLD
    return Cluster(through_mpi, world.Get_size(), world.Get_rank(), world.Split_type(MPI.COMM_TYPE_SHARED).Get_rank())


def through_mpi() -> str:
    """An address of the first process, told to all by MPI."""
    import socket

    from mpi4py import MPI

    def own() -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("10.255.255.255", 1))  # sends nothing: asks which of its addresses leads out
                host = probe.getsockname()[0]
            except OSError:
                host = "127.0.0.1"
        with socket.socket() as free:
            free.bind(("", 0))
            return f"{host}:{free.getsockname()[1]}"

    world = MPI.COMM_WORLD
    return world.bcast(own() if world.Get_rank() == 0 else None, root=0)


METHODS: dict[str, Callable[[Mapping[str, str]], Cluster | None]] = {
    "ompi": open_mpi, "slurm": slurm, "pmi": process_manager, "mpi4py": mpi4py}
ASKED_FOR = {"mpi4py"}  # methods that are tried only by name


def detected(method: str | None = None) -> Cluster | None:
    """The processes that the environment tells of, by one method or by all; None where it tells of none."""
    if method == "deactivate" or method is not None and method not in METHODS:
        return None
    for name, found in METHODS.items():
        if name == method or method is None and name not in ASKED_FOR:
            cluster = found(os.environ)
            if cluster is not None:
                return cluster
    return None


__all__ = ["Cluster", "METHODS", "detected"]
