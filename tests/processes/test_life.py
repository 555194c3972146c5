"""How processes find each other, and what becomes of the others when one ends."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from styrax.processes.clusters import detected, first_host
from tests.compat.running import environment

from . import ended, free_port, start

BEGIN = "import os, sys, time\nimport jax\njax.distributed.initialize(sys.argv[2], 4, int(sys.argv[1]), {})\n"
MEET = "from styrax.processes.cohort import current\nimport numpy as np\npeers = current().peers\n"


def run_all(tmp_path: Path, text: str, count: int = 4, **extra: str) -> list[tuple[int, str, str]]:
    script = tmp_path / "program.py"
    script.write_text(text)
    port = free_port()
    return ended(start([[str(script), str(i), f"localhost:{port}"] for i in range(count)], **extra), 60)


def test_a_dead_process_is_named(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + MEET + (
        "try:\n    peers.reduce('start', np.ones(3), range(4), 'sum')\n"
        "    if jax.process_index() == 2: os.kill(os.getpid(), 9)\n"
        "    peers.reduce('end', np.ones(3), range(4), 'sum')\n"
        "except jax.errors.JaxRuntimeError as error:\n    print(error)\n"))
    assert [status for status, _, _ in found] == [0, 0, -9, 0], found
    for i in (0, 1, 3):
        assert "process 2 has died" in found[i][1], found[i]


def test_a_process_dies_in_the_midst_of_programs(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + (
        "import numpy as np, jax.numpy as jnp\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n"
        "mesh = jax.make_mesh((4,), ('i',), (jax.sharding.AxisType.Auto,))\n"
        "x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P('i')))\n"
        "step = jax.jit(lambda x: x / jnp.linalg.norm(x))\ntry:\n"
        "    for i in range(10_000):\n        x = step(x)\n"
        "        if i == 5 and jax.process_index() == 2: os.kill(os.getpid(), 9)\n"
        "except jax.errors.JaxRuntimeError as error:\n    print(error)\n"))
    for i in (0, 1, 3):
        assert "process 2 has died" in found[i][1], found[i]


def test_the_first_process_may_die(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + MEET + (
        "try:\n    peers.reduce('start', np.ones(3), range(4), 'sum')\n"
        "    if jax.process_index() == 0: os.kill(os.getpid(), 9)\n"
        "    peers.client.wait_at_barrier('end', 50_000)\n"
        "except jax.errors.JaxRuntimeError as error:\n    print(error)\n"))
    for i in (1, 2, 3):
        assert "process 0" in found[i][1], found[i]


def test_a_barrier_breaks_when_a_process_dies(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + (
        "from jax._src.distributed import global_state\n"
        "if jax.process_index() == 1:\n    os._exit(3)\n"
        "try:\n    global_state.client.wait_at_barrier('end', 50_000)\n"
        "except jax.errors.JaxRuntimeError as error:\n    print(error)\n"))
    for i in (0, 2, 3):
        assert "process 1" in found[i][1], found[i]


def test_waiting_takes_no_processor(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + MEET + (
        "if jax.process_index() == 0:\n    time.sleep(1.5)\nbefore = time.process_time()\n"
        "peers.reduce('a', np.ones(3), range(4), 'sum')\nprint(time.process_time() - before < 0.5)\n"))
    assert [out.strip() for _, out, _ in found] == ["True"] * 4, found


def test_all_save_at_one_step_when_one_is_to_end(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + (
        "from jax.experimental import multihost_utils\nfor step in range(10_000):\n"
        "    if multihost_utils.reached_preemption_sync_point(step): break\n"
        "    if step == 3 and jax.process_index() == 1: os.kill(os.getpid(), 15)\n"
        "    time.sleep(0.002 * jax.process_index())\nprint(step)\n"))
    steps = {out for _, out, _ in found}
    assert len(steps) == 1 and 3 < int(steps.pop()) < 9_999, found


def test_processes_that_do_different_things_are_told(tmp_path):
    found = run_all(tmp_path, BEGIN.format("") + MEET + (
        "try:\n    peers.reduce(f'step {jax.process_index() == 3}', np.ones(3), range(4), 'sum')\n"
        "except jax.errors.JaxRuntimeError as error:\n    print(error)\n"))
    assert all("different things" in out or "has died" in out for _, out, _ in found), found
    assert any("different things" in out for _, out, _ in found), found


def test_who_does_not_come_is_waited_for_in_vain(tmp_path):
    text = BEGIN.format("initialization_timeout=1").replace("jax.distributed", "try: jax.distributed", 1) + (
        "except jax.errors.JaxRuntimeError as error: print(error)\n")
    (status, out, err), = run_all(tmp_path, text, 1)
    assert "DEADLINE_EXCEEDED" in out and "4 processes" in out, out + err
    script = tmp_path / "other.py"
    script.write_text(text)
    (status, out, err), = ended(start([[str(script), "1", f"localhost:{free_port()}"]]), 30)
    assert "DEADLINE_EXCEEDED" in out and "coordinator" in out, out + err


def test_two_processes_of_one_number(tmp_path):
    text = ("import sys\nimport jax\ntry: jax.distributed.initialize(sys.argv[2], 2, 0 if sys.argv[1] == '0' else 5)\n"
            "except ValueError as error: print(error)\n")
    (_, out, err), = ended(start([["-c", text, "1", f"localhost:{free_port()}"]]), 30)
    assert "process_id < num_processes" in out, out + err


def test_devices_in_use(tmp_path):
    text = ("import jax\njax.devices()\ntry: jax.distributed.initialize('localhost:1', 2, 0)\n"
            "except RuntimeError as error: print(error)\nprint(jax.distributed.is_initialized())\n")
    (_, out, err), = ended(start([["-c", text]]), 30)
    assert "must be called before any JAX calls" in out and out.endswith("False\n"), out + err


@pytest.mark.parametrize("missing", ["coordinator_address", "Number of processes", "process id"])
def test_what_is_missing_is_named(missing):
    given = {"coordinator_address": "", "Number of processes": "'localhost:1'", "process id": "'localhost:1', 2"}
    text = (f"import jax\ntry: jax.distributed.initialize({given[missing]})\n"
            "except ValueError as error: print(error)\n")
    (_, out, err), = ended(start([["-c", text]]), 30)
    assert missing in out, out + err


def test_environment(tmp_path):
    port = free_port()
    text = "import jax\njax.distributed.initialize()\nprint(jax.process_index(), jax.process_count())"
    jobs = [start([["-c", text]], JAX_COORDINATOR_ADDRESS=f"127.0.0.1:{port}", JAX_NUM_PROCESSES="2",
                  JAX_PROCESS_ID=str(i))[0] for i in range(2)]
    assert [out for _, out, _ in ended(jobs)] == ["0 2\n", "1 2\n"]


LAUNCHERS = {
    "slurm": (dict(SLURM_JOB_ID="5000", SLURM_STEP_NODELIST="node[007-009],z", SLURM_NTASKS="8", SLURM_PROCID="3",
                   SLURM_LOCALID="1"), ("node007:62344", 8, 3, 1)),
    "ompi": (dict(OMPI_MCA_orte_hnp_uri="1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", OMPI_COMM_WORLD_SIZE="4",
                  OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_LOCAL_RANK="0"), ("10.96.0.1:62624", 4, 1, 0)),
    "pmi": (dict(PMI_RANK="1", PMI_SIZE="2", MPI_LOCALNRANKS="2"),
            (f"127.0.0.1:{os.getppid() % 4096 + 61440}", 2, 1, None)),
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launchers(monkeypatch, launcher):
    for names, _ in LAUNCHERS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    env, wanted = LAUNCHERS[launcher]
    assert detected() is None
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for method in (None, launcher):
        found = detected(method)
        assert found is not None
        assert (found.address(), found.processes, found.number, found.local) == wanted
    assert detected("deactivate") is None
    assert detected("mpi4py") is None or importlib.util.find_spec("mpi4py")


@pytest.mark.parametrize(("nodes", "first"), [("a", "a"), ("a,b", "a"), ("a[1,3]", "a1"), ("a[001-17]b", "a001")])
def test_lists_of_hosts(nodes, first):
    assert first_host(nodes) == first


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="no mpi4py: pip install styrax[mpi]")
@pytest.mark.parametrize("method", ["", "cluster_detection_method='mpi4py'"])
def test_mpirun(tmp_path, method):
    script = tmp_path / "program.py"
    script.write_text(f"import jax\njax.distributed.initialize({method})\n"
                      "from styrax.processes.cohort import current\n"
                      "import os\nothers = len(current().peers.gather_bytes('a', b'x'))\n"
                      "os.write(1, f'{jax.process_count()} {others} {jax.process_index()}\\n'.encode())\n")  # at once
    mpirun = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert mpirun, "mpi4py is installed without an MPI"
    done = subprocess.run([mpirun, "-n", "4", sys.executable, "-m", "styrax", str(script)], env=environment(),
                          capture_output=True, text=True, timeout=100)
    assert sorted(re.findall(r"\d 4 \d", done.stdout)) == [f"4 4 {i}" for i in range(4)], done.stdout + done.stderr
