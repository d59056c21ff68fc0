"""`python -m host_tools`: the command line of this folder."""

from edge.commands.base import folder_app, run

app = folder_app("host_tools", "Offline tools: rerun, report, benchmarks.")

if __name__ == "__main__":
    run(app, "python -m host_tools")
