"""The commands of `python -m host_tools`, one file each; `add(app)` puts a command on the command line."""
