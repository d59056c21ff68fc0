"""`python -m host_tools`: the command line of this folder."""

from edge import plugins
from edge.commands.base import new_app, run

app = new_app("host_tools", "Offline tools: rerun, report, benchmarks.")
app.callback()(lambda: None)
for _name in plugins.names("host_tools.commands"):
    plugins.load("host_tools.commands", _name, setting="command").add(app)

if __name__ == "__main__":
    run(app, "python -m host_tools")
