"""Latency and throughput suites, and the budgets they are held to."""
