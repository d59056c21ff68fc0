"""`python -m models`: the command line of this folder."""

from edge import plugins
from edge.commands.base import new_app, run

app = new_app("models", "The zoo: fetch, export, verify and recommend model artefacts.")
app.callback()(lambda: None)
for _name in plugins.names("models.commands"):
    plugins.load("models.commands", _name, setting="command").add(app)

if __name__ == "__main__":
    run(app, "python -m models")
