"""Metrics as pure functions: arrays in, float64 out; what is undefined is `nan`, never 0 and never 1."""
