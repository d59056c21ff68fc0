"""Reports: one self-contained HTML page, and tables as JSON, CSV and LaTeX. `page` is the builder all of them use."""
