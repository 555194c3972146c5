"""Windows by name: sums of cosines; for all others SciPy's signal is asked, whose import takes a second."""

from __future__ import annotations

from typing import Any

import numpy as np

# F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc. IEEE 66 (1978)
COSINES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("boxcar", "box", "ones", "rect", "rectangular"), (1.0,)),
    **dict.fromkeys(("hann", "han"), (0.5, 0.5)),
    **dict.fromkeys(("hamming", "hamm", "ham"), (0.54, 1.0 - 0.54)),
    **dict.fromkeys(("blackman", "black", "blk"), (0.42, 0.50, 0.08)),
}


def window(name: Any, length: int) -> np.ndarray:
    """The periodic window of a name, or of a name with parameters, as `scipy.signal.get_window` gives it.

    Returns: float64, shape [length].

    Raises:
      ValueError: SciPy knows no such window.
    """
    weights = COSINES.get(name) if isinstance(name, str) else None
    if weights is None or length < 1:
        from scipy.signal import get_window

        return get_window(name, length)
    if length == 1:
        return np.ones(1)
    angles = np.linspace(-np.pi, np.pi, length + 1)
    out = np.zeros(length + 1)
    for k, weight in enumerate(weights):
        out += weight * np.cos(k * angles)
    return out[:-1]


__all__ = ["window"]
