"""Gaze: where it comes from (`sources`), its mapping onto the scene, fixations."""
