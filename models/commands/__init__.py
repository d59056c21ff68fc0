"""The commands of `python -m models`, one file each; `add(app)` puts a command on the command line."""
