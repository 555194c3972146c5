"""The demonstration, as `make demo` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EIGHT = "--xla_force_host_platform_device_count=8"


def test_digits(tmp_path):
    picture = tmp_path / "digits.png"
    done = subprocess.run(
        [sys.executable, "-m", "styrax", str(ROOT / "examples" / "digits.py"), str(picture)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    found = re.fullmatch(r"test accuracy: mlp (\d+\.\d) % conv (\d+\.\d) %", last)
    assert found, last
    mlp, conv = map(float, found.groups())
    assert mlp >= 97 and conv >= 98
    assert picture.stat().st_size > 10_000


def test_sharded():
    done = subprocess.run(
        [sys.executable, "-m", "styrax", str(ROOT / "examples" / "sharded.py"), "8"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "XLA_FLAGS": EIGHT},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *_, spread, last = done.stdout.strip().splitlines()
    assert spread == "weights stay spread: P(None, 'model') over 8 devices"
    found = re.fullmatch(r"largest difference of losses: (\S+), last loss (\S+)", last)
    assert found, last
    assert float(found[1]) < 1e-5 and float(found[2]) < 2
