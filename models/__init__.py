"""The zoo: weight fetchers, converters, definitions, verification."""
