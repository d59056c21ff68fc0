"""The runtime of live sources: how it starts, turns, watches over itself, and is watched and commanded from outside."""
