"""Calibration: INT8 quantisation with accuracy gates, nine-point gaze fit and validation, synchronisation."""
