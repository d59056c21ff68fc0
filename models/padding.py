"""Padding as TensorFlow has it."""

from __future__ import annotations


def same_pads(size: int, kernel: int, stride: int) -> list[int]:
    """TensorFlow's SAME padding of a square, as [top, left, bottom, right]: the odd pixel goes below and right."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return [total // 2, total // 2, total - total // 2, total - total // 2]
