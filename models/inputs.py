"""Descriptions of the picture that a network takes: float32 (n, channels, height, width) from pixels of 0..255."""

from __future__ import annotations

from edge.manifest import TensorSpec

_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


def picture_input(side: int, mean: tuple[float, ...], scale: tuple[float, ...]) -> TensorSpec:
    """Return the input ``(pixel - mean) * scale``: RGB, or grey with one mean; `side` in pixels, -1 if it is free."""
    return TensorSpec(
        name="image",
        shape=(-1, len(mean), side, side),
        layout="NCHW",
        colour="RGB" if len(mean) == 3 else "GRAY",
        mean=mean,
        scale=scale,
        dims=("n", "channels", "height", "width"),
    )


def unit_input(mean: float, divisor: float, side: int = 224) -> TensorSpec:
    """RGB with one mean and one divisor for all channels."""
    return picture_input(side, (mean,) * 3, (1 / divisor,) * 3)


def imagenet_input() -> TensorSpec:
    """RGB of 224 pixels, ImageNet's mean and standard deviation, which are given for values of 0..1."""
    mean, scale = tuple(255 * m for m in _IMAGENET_MEAN), tuple(1 / (255 * s) for s in _IMAGENET_STD)
    return picture_input(224, mean, scale)
