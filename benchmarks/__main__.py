"""`python -m benchmarks`: the command line of this folder."""

from edge.commands.base import folder_app, run

app = folder_app("benchmarks", "Measure: latency, memory, start, a soak; what redaction costs and hides.")

if __name__ == "__main__":
    run(app, "python -m benchmarks")
