"""`python -m benchmarks`: the command line of this folder."""

from edge import plugins
from edge.commands.base import new_app, run

app = new_app("benchmarks", "Measure: latency, throughput, memory; compare with budgets.")
app.callback()(lambda: None)
for _name in plugins.names("benchmarks.commands"):
    plugins.load("benchmarks.commands", _name, setting="command").add(app)

if __name__ == "__main__":
    run(app, "python -m benchmarks")
