"""Bias correction: what rounding the weights adds to a channel's mean is taken off its bias.

Analytical bias correction of Nagel et al. 2019 (arXiv:1906.04721, section 4.2), with the input's mean measured on
calibration pictures: the error of the output's mean is (round(W) - W) * E[x], summed over the kernel. The border, where
padding makes E[x] smaller, is left out of account.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from calibration.activations import Floats, Statistics, is_depthwise

_LEVELS = 127  # symmetric int8


def correct_bias(model: onnx.ModelProto, convolutions: list[str], statistics: Statistics) -> onnx.ModelProto:
    """Return the network with corrected biases of `convolutions`, which are about to be quantised.

    `statistics` holds the `mean` of the tensors that they read; a convolution without a bias stays as it is.
    """
    corrected = onnx.ModelProto()
    corrected.CopyFrom(model)
    weights = {weight.name: weight for weight in corrected.graph.initializer}
    for node in corrected.graph.node:
        if node.name in convolutions and len(node.input) > 2:
            shift = mean_error(numpy_helper.to_array(weights[node.input[1]]), statistics.mean[node.input[0]])
            bias = numpy_helper.to_array(weights[node.input[2]])
            weights[node.input[2]].CopyFrom(numpy_helper.from_array((bias - shift).astype(np.float32), node.input[2]))
    return corrected


def correctable(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the convolutions whose kernel reads all channels of its input, or each on its own."""
    kernels = {weight.name: weight.dims for weight in model.graph.initializer}
    found = []
    for node in model.graph.node:
        if node.op_type == "Conv" and node.input[1] in kernels:
            group = next((a.i for a in node.attribute if a.name == "group"), 1)
            out, inner = kernels[node.input[1]][:2]
            if group == 1 or (inner == 1 and group == out):
                found.append(node)
    return found


def mean_error(kernel: npt.NDArray, mean: Floats) -> Floats:
    """Return what rounding `kernel` to int8, per output channel, adds to each output's mean: float64 (out,).

    Parameters
    ----------
    kernel : float32 (out, in / group, kh, kw)
    mean : float64 (in,)
        Mean of the input per channel.
    """
    values = kernel.astype(np.float64)
    largest = np.abs(values).max(axis=(1, 2, 3), keepdims=True)
    step = np.where(largest > 0, largest, 1.0) / _LEVELS
    error: Floats = (np.rint(values / step) * step - values).sum(axis=(2, 3))
    return error[:, 0] * mean if is_depthwise(kernel, mean) else error @ mean
