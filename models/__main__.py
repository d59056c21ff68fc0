"""`python -m models`: the command line of this folder."""

from edge.commands.base import folder_app, run

app = folder_app("models", "The zoo: fetch, export, verify and recommend model artefacts.")

if __name__ == "__main__":
    run(app, "python -m models")
