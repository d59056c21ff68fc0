"""The commands of `python -m calibration`, one file each; `add(app)` puts a command on the command line."""
