"""The splitmix64 generator of docs/conventions.md, in plain Python integers."""

from __future__ import annotations

import math

MODULUS = 2**64
INCREMENT = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """The output function of splitmix64."""
    z = z % MODULUS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % MODULUS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % MODULUS
    return z ^ (z >> 31)


class Splitmix:
    """One 64-bit state `s`; each draw moves it by a constant and mixes it."""

    def __init__(self, seed: int) -> None:
        self.s = mix(seed + INCREMENT)

    def uniform(self) -> float:
        """A number in [0, 1) with 53 bits."""
        self.s = (self.s + INCREMENT) % MODULUS
        return (mix(self.s) >> 11) * 2.0**-53

    def slot(self, n: int) -> int:
        """A slot among 0..n-1."""
        return math.floor(self.uniform() * n)
