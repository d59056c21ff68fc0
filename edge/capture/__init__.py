"""Frame sources. One file each; live ones are child processes that hand frames over in shared memory."""
