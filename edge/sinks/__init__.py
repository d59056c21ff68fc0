"""Outputs. One file each; a sink takes events and redacted pictures, nothing else."""
