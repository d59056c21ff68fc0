"""Benchmarks: latency, memory and start of a device, a soak, and what redaction hides."""
