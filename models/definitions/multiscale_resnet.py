"""A residual network with attention that embeds a picture at two scales.

A stem with normalisation, activation and pooling; four stages of residual blocks, each with convolutional block
attention (CBAM, Woo et al. 2018: first which channels, then where); then a local branch, which keeps the 7x7 map, and a
global one, which pools it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTHS, DEPTHS = (64, 128, 256, 512), (2, 2, 2, 2)
LOCAL_CHANNELS, SIDE = 32, 7
LOCAL_DIM, GLOBAL_DIM = LOCAL_CHANNELS * SIDE * SIDE, WIDTHS[-1]
_REDUCTION = 16


class ChannelAttention(nn.Module):  # type: ignore[misc]
    """Weigh channels by what their mean and maximum over the picture say, through one shared network."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = max(channels // _REDUCTION, 4)
        self.shared = nn.Sequential(nn.Conv2d(channels, hidden, 1), nn.ReLU(), nn.Conv2d(hidden, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        pooled = x.mean(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
        return x * torch.sigmoid(self.shared(pooled[0]) + self.shared(pooled[1]))


class SpatialAttention(nn.Module):  # type: ignore[misc]
    """Weigh places by what the mean and maximum over their channels say."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        maps = torch.cat((x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)), dim=1)
        return x * torch.sigmoid(self.conv(maps))


class AttentionBlock(nn.Module):  # type: ignore[misc]
    """Residual block of two 3x3 convolutions; attention acts on the residual, before it is added."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            ChannelAttention(width),
            SpatialAttention(),
        )
        self.shortcut = (
            nn.Identity()
            if stride == 1 and channels == width
            else nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.residual(x) + self.shortcut(x))


class MultiScaleResNet(nn.Module):  # type: ignore[misc]
    """Pictures float32 (n, 3, 224, 224) -> local float32 (n, 1568) and global float32 (n, 512)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, WIDTHS[0], 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, channels = [], WIDTHS[0]
        for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
            for block in range(depth):
                blocks.append(AttentionBlock(channels, width, 2 if stage and not block else 1))
                channels = width
        self.stages = nn.Sequential(*blocks)
        self.local = nn.Conv2d(channels, LOCAL_CHANNELS, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stages(self.stem(image))
        return self.local(x).flatten(1), x.mean(dim=(2, 3))
