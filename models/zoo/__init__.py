"""The artefacts of the zoo, a family per file; each defines `RECIPES`."""
