"""Inference runtimes, one file each behind one contract."""
