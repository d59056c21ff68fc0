"""The offline evaluation: from a data set and predictions to tables, on the runtime's own scoring code."""
