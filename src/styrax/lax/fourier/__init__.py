"""The discrete Fourier transform."""

from __future__ import annotations

from .transform import FftType, fft, fft_p

__all__ = ["FftType", "fft", "fft_p"]
