"""Gaze: sources (one file each), mapping onto the scene, fixations."""
