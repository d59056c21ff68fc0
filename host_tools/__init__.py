"""Offline tools on the runtime's own scoring code: reruns, reports, benchmarks."""
