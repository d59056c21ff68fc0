"""EmoGaze Edge: the runtime. Importing it needs numpy alone; heavy libraries wait for the stage that uses them."""

__version__ = "0.1.0"
