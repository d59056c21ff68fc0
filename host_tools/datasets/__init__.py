"""Data sets: the layout on disk that everything here reads, and importers that write it, one file each."""
