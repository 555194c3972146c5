"""What registers a processor is taken to have, by the bytes of its vectors."""

from __future__ import annotations


def is_avx512(vector_bytes: int) -> bool:
    """Whether there are 32 vector registers, and others for masks, instead of 16 and none. Where there are none, a mask
    is a vector as wide as what it masks, and what is stored or gathered under it goes lane by lane."""
    return vector_bytes >= 64
