"""`python -m benchmarks`: the command line of this folder."""

from edge.commands.base import folder_app, run

app = folder_app("benchmarks", "Measure: latency, throughput, memory; compare with budgets.")

if __name__ == "__main__":
    run(app, "python -m benchmarks")
