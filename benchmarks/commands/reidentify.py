"""`python -m benchmarks reidentify`: can a covered face be recognised?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import envelope


def add(app: typer.Typer) -> None:
    app.command("reidentify")(reidentify)


def reidentify(
    pictures: Annotated[
        list[Path] | None, typer.Argument(help="Stills, or folders of them; every face another person.")
    ] = None,
    demo: Annotated[bool, typer.Option(help="Also the demo pictures of the face-api package (22 faces).")] = True,
    seed: Annotated[int, typer.Option(help="Of the crops' framing and light.")] = 0,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Attack each cover with a real face recogniser, against a clear gallery and one that is covered alike."""
    import tempfile

    from benchmarks.reidentification import find_faces, measure
    from edge.config import ModelsConfig
    from edge.files import write_json
    from edge.manifest import models_dir
    from models.archives import Store

    models = ModelsConfig()
    with tempfile.TemporaryDirectory() as folder:
        sources = list(pictures or [])
        if demo:
            store = Store(models_dir("") / ".archives", None)
            for i in range(1, 7):
                path = Path(folder) / f"sample{i}.jpg"
                path.write_bytes(store.member("face_api", f"package/demo/sample{i}.jpg"))
                sources.append(path)
        result = measure(find_faces(sources, models), models, seed=seed)
    print(f"{result['n']} faces, chance {result['chance']:.3f}, {result['recogniser']}")
    for cover, attacks in result["attacks"].items():
        for attack, figures in attacks.items():
            low, high = figures["interval"]
            verdict = "above chance" if figures["above_chance"] else "not above chance"
            print(
                f"{cover:<7} against a gallery {attack:<6}"
                f"{figures['hits']:>3} of {result['n']} ({low:.2f} to {high:.2f}), {verdict}"
            )
    if json:
        options = {"pictures": [str(p) for p in pictures or []], "demo": demo, "seed": seed}
        write_json(json, envelope("benchmark_reidentify", options, result))
