"""Where a network's weights come from: a state dict, or a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.errors import ModelError
from models.pth import read_state_dict

Array = npt.NDArray[np.float32]
#: (name of a weight, its shape) -> its values
Weights = Callable[[str, tuple[int, ...]], Array]


def from_state_dict(path: Path) -> Weights:
    """Take weights from a PyTorch state dict; one that is missing or of another shape is a ModelError."""
    state = read_state_dict(path)

    def get(name: str, shape: tuple[int, ...]) -> Array:
        if name not in state:
            raise ModelError(str(path), f"has no weight {name}", fix="check that it belongs to this architecture")
        if state[name].shape != shape:
            raise ModelError(str(path), f"{name} has another shape", expected=str(shape), got=str(state[name].shape))
        if not np.isfinite(state[name]).all():
            raise ModelError(str(path), f"{name} holds NaN or infinity", fix="train or export it again")
        return state[name].astype(np.float32)

    return get


def seeded(seed: int = 0) -> Weights:
    """Make weights up: for latency, structure and parity, never for accuracy.

    Kernels are He-initialised, so that activations keep their size; normalisation is the identity. Each weight's values
    depend on its name and the seed alone.
    """

    def get(name: str, shape: tuple[int, ...]) -> Array:
        if len(shape) == 1:
            return np.full(shape, 1.0 if name.endswith(("weight", "running_var")) else 0.0, dtype=np.float32)
        digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
        fan_in = int(np.prod(shape[1:]))
        values = np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(shape)
        return (values * np.sqrt(2.0 / fan_in)).astype(np.float32)

    return get
