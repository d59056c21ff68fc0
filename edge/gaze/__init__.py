"""Gaze: sources (one file each), mapping onto the scene, fixations."""

#: Modules of this folder that are no gaze sources.
HELPERS = (
    *("angles", "calibration", "candidates", "clusters", "description", "fixations", "geometry", "mapping", "recorded"),
    *("simulator", "sources", "validation"),
)
