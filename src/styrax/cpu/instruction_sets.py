"""Which instructions of an x86 processor code may have: all, or those of a level and below.

The level is what XLA's CPU compiler is told by `XLA_FLAGS=--xla_cpu_max_isa=AVX2`, by the same names.
"""

from __future__ import annotations

import os
import re

# What each level adds to those above it, by LLVM's names of features
LEVELS = {
    "SSE4_2": "",
    "AVX": "avx f16c fma4 xop vaes vpclmulqdq",
    "AVX2": "avx2 fma",
    "AVX512": "avx512f avx512cd avx512bw avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512bitalg "
              "avx512vpopcntdq avx512vp2intersect",
    "AVX512_VNNI": "avx512vnni avxvnni avxvnniint8 avxvnniint16",
    "AVX512_BF16": "avx512bf16 avxneconvert",
    "AMX": "amx-tile amx-int8 amx-bf16 avx512fp16 avxifma",
    "AMX_FP16": "amx-fp16 amx-complex",
}
_FLAG = re.compile(r"--xla_cpu_max_isa=(\S+)")


def highest() -> str:
    """The level that the environment names; empty where it names none.

    Raises:
      ValueError: there is no such level.
    """
    found = _FLAG.findall(os.environ.get("XLA_FLAGS", ""))
    level = found[-1].upper() if found else ""
    if level and level not in LEVELS:
        raise ValueError(f"XLA_FLAGS: --xla_cpu_max_isa={found[-1]} is none of {', '.join(LEVELS)}")
    return level


def lowered(features: str, level: str) -> str:
    """A processor's features ("+avx2,-sse4a,…") without those above a level."""
    if not level:
        return features
    names = list(LEVELS)
    off = {feature for name in names[names.index(level) + 1:] for feature in LEVELS[name].split()}
    return ",".join(f"-{f[1:]}" if f[1:] in off else f for f in features.split(","))
