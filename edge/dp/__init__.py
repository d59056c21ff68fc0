"""Differential privacy for what is derived from gaze: OpenDP's mechanisms, statistics, and a ledger of the budget."""
