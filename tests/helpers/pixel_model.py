"""An embedder whose features can be worked out by hand: the mean of each colour over a grid of cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edge.backends.base import Model, Tensors
from edge.manifest import Manifest, TensorSpec

SIDE = 8


class PixelModel(Model):
    """Features are the means of 2 x 2 cells of each channel (12 values), of pixels in 0..255, in the order R, G, B.

    `batches` records the size of each inference.
    """

    def __init__(self, *, batch: int = -1, outputs: tuple[str, ...] = ("features",), name: str = "pixels") -> None:
        picture = TensorSpec(name="image", shape=(batch, 3, SIDE, SIDE), layout="NCHW", colour="RGB")
        sizes = {"features": 12, "local": 12, "global": 3}
        manifest = Manifest(
            folder=Path(),
            name=name,
            version="1",
            role="embedder",
            precision="fp32",
            file="none",
            sha256=name.encode().hex().ljust(64, "0"),
            inputs=(picture,),
            outputs=tuple(TensorSpec(name=output, shape=(-1, sizes.get(output, 1))) for output in outputs),
            source="tests",
            licence="CC0",
            weights="seeded",
            mean_local=np.full(12, 100, np.float32),
            mean_global=np.full(sizes["global"] if "global" in outputs else 12, 100, np.float32),
        )
        super().__init__(manifest, backend="numpy", active="cpu")
        self.batches: list[int] = []

    def _run(self, feeds: Tensors, outputs: tuple[str, ...]) -> Tensors:
        image = feeds["image"]
        self.batches.append(len(image))
        half = SIDE // 2
        cells = image.reshape(len(image), 3, 2, half, 2, half).mean(axis=(3, 5)).reshape(len(image), 12)
        values = {"features": cells, "local": cells, "global": image.mean(axis=(2, 3))}
        return {name: values[name].astype(np.float32) for name in outputs}
