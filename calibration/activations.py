"""What flows through a network on calibration pictures: the size and the mean of every channel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Per tensor and channel, float64 (c,): the largest absolute value, and the mean over pictures and places."""

    largest: dict[str, Floats]
    mean: dict[str, Floats]


def observe(model: onnx.ModelProto, tensors: list[str], batches: Iterable[npt.NDArray[np.float32]]) -> Statistics:
    """Run a network of one picture input and observe some of its tensors, each (n, c, h, w).

    Parameters
    ----------
    model : onnx.ModelProto
    tensors : list of str
        Names; the input itself may be among them.
    batches : iterable of float32 (n, 3, h, w)
    """
    import onnxruntime as ort

    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    picture = watched.graph.input[0].name
    given = [output.name for output in watched.graph.output]
    inner = [name for name in dict.fromkeys(tensors) if name != picture and name not in given]
    watched.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inner)
    session = ort.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    largest, total, count = dict[str, Floats](), dict[str, Floats](), 0
    for batch in batches:
        names = [*given, *inner]
        values = dict(zip(names, session.run(names, {picture: batch}), strict=True)) | {picture: batch}
        count += len(batch)
        for name, value in ((name, values[name]) for name in dict.fromkeys(tensors)):
            size = np.abs(value).max(axis=(0, 2, 3)).astype(np.float64)
            largest[name] = np.maximum(largest.get(name, size), size)
            total[name] = total.get(name, 0.0) + value.mean(axis=(2, 3), dtype=np.float64).sum(axis=0)
    return Statistics(largest, {name: value / count for name, value in total.items()})


def is_depthwise(kernel: npt.NDArray, channels: Floats) -> bool:
    """Whether a kernel (out, in / group, kh, kw) reads each of its input's `channels` on its own."""
    return kernel.shape[1] == 1 and len(channels) == len(kernel)
