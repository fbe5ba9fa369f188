"""Random numbers that can be replayed from a seed.

A roll is a function of the seed and of what it is rolled for, never of what was rolled before. So
the order in which clients send does not change their results, as it would with one random generator
for all.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ("identity", "roll")


def roll(seed: int, *occasion: object) -> float:
    """A number in [0, 1) for this occasion."""
    # 53 bits are what a float holds; one more could round up to 1.0.
    return (int.from_bytes(_digest(seed, occasion), "big") >> 11) / 2**53


def identity(seed: int, *occasion: object) -> str:
    """Sixteen hexadecimal digits for this occasion: the tail of an id as vendors make them."""
    return _digest(seed, occasion).hex()


def _digest(seed: int, occasion: tuple[object, ...]) -> bytes:
    return blake2b(repr((seed, *occasion)).encode(), digest_size=8).digest()
