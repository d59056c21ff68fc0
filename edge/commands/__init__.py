"""The commands of `emogaze`, one file each; `add(app)` puts a command on the command line."""
