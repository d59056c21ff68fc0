"""`python -m calibration`: the command line of this folder."""

from edge.commands.base import folder_app, run

app = folder_app("calibration", "Calibrate: INT8 models, gaze, synchronisation.")

if __name__ == "__main__":
    run(app, "python -m calibration")
