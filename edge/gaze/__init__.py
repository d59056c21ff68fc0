"""Gaze: sources (one file each), mapping onto the scene, fixations."""

#: Modules of this folder that are no gaze sources.
HELPERS = ("angles", "candidates", "fixations", "geometry", "mapping", "recorded", "simulator", "sources")
