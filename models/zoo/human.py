"""MobileNetV3-Large, width about 0.75, trained on COCO: the backbone of the `human` package's object detector."""

from __future__ import annotations

import json

from models.archives import Store
from models.embedders import finish, outputs
from models.inputs import unit_input
from models.recipes import Built, Recipe

_LAST = "tower_0/extern1/hard_swish/mul_1"
_FEATURES = 480


def _backbone(store: Store) -> Built:
    from models.graph import Graph
    from models.tfjs import GraphReader

    spec = unit_input(0.0, 1.0)
    graph = Graph()
    model = json.loads(store.member("human", "package/models/centernet.json"))
    content = store.member("human", "package/models/centernet.bin", "1b635a15009071f5")
    last, side = GraphReader(model, content, graph, spec.size()[0]).read(_LAST)
    graph.pool_features(graph.op("Identity", last, name="map"))
    after = outputs(_FEATURES, side)
    return finish(graph.model((spec,), after, "mobilenet_v3_large_075"), (spec,), after, store)


RECIPES = (Recipe("mobilenet_v3_large_075-fp32", "embedder", "human", "1", _backbone, group="npm"),)
