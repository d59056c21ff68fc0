"""Differential privacy on export, and what it costs in usefulness."""
