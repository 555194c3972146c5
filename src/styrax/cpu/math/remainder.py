"""The remainder of a division that rounds towards zero."""

from __future__ import annotations

from .block import Block, Register

INF = float("inf")


def reduced(b: Block, x: Register, y: Register) -> Register:
    """x modulo y, exactly, for 0 <= x < 2**(p - 1) * y with p the digits of a mantissa.

    The quotient, rounded and cut off, is a whole number that is off by one at most. The remainder that goes with it
    is a multiple of the smaller operand's last place and below 2y, so that it is a number: `fma` does not round.
    """
    rest = b.fma(-b.trunc(x / y), y, x)
    rest = b.select(rest < 0.0, rest + y, rest)
    return b.select(b.not_lt(rest, y), rest - y, rest)


def fmod(b: Block, x: Register, y: Register) -> Register:
    x, y = b.freeze(x), b.freeze(y)
    size, divisor = b.abs(x), b.abs(y)
    digits, most = b.pick((23, 254), (52, 2046))  # `most`: the largest power of two that `scale` takes
    far = (b.not_lt(size, divisor * 2.0**digits)) & (size < INF) & (divisor > 0.0)

    def rare() -> list[Register]:
        # Multiples of the divisor, of the dividend's size, are taken off first.
        def step(size: Register) -> tuple[list[Register], Register]:
            _, steps = b.split(size)
            _, least = b.split(divisor)
            n, n_bits = b.nearest(b.at_most(b.at_least(steps - least - (digits - 2.0), 0.0), most), 1.0)
            size = reduced(b, size, b.scale(divisor, n, n_bits))
            return [size], b.not_lt(size, divisor * 2.0**digits)

        return b.iterate([size], far, step, 4096)

    (near,) = b.rarely(b.any(far), [size], rare)
    rest = b.select(b.eq(divisor, INF) & (size < INF), size, reduced(b, near, divisor))
    return b.copysign(rest, x)


FUNCTIONS = {"fmod": fmod}
