"""Importers, one file each: ``convert(source, out, options) -> Imported`` writes a data set's layout (`base`)."""
