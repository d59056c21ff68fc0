"""The commands of `python -m benchmarks`, one file each; `add(app)` puts a command on the command line."""
