"""`python -m calibration`: the command line of this folder."""

from edge import plugins
from edge.commands.base import new_app, run

app = new_app("calibration", "Calibrate: INT8 models, gaze, synchronisation.")
app.callback()(lambda: None)
for _name in plugins.names("calibration.commands"):
    plugins.load("calibration.commands", _name, setting="command").add(app)

if __name__ == "__main__":
    run(app, "python -m calibration")
