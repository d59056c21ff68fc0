"""`python -m host_tools memo`: the benchmark of emotional portraits, whole or one step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from edge.commands.base import emit_json

ConfigFile = Annotated[Path, typer.Argument(help="TOML; `memo synthetic` writes an example.")]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="Folder for results.json, tables/ and report.html.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes for the zoo's classifiers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print what results.json holds.")]
EngineName = Annotated[str, typer.Option(help="Where they run: local or ray.")]


class _RunByDefault(TyperGroup):
    """`memo CONFIG.toml` is short for `memo run CONFIG.toml`."""

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=_RunByDefault, no_args_is_help=True, help="MEMO-Bench: `memo CONFIG.toml -o DIR` runs it all."
    )
    group.command("run")(run)
    group.command("generation")(generation)
    group.command("understanding")(understanding)
    group.command("report")(report)
    group.command("synthetic")(synthetic)
    group.command("prompts")(prompts)
    group.command("generate")(generate)
    group.command("review")(review)
    app.add_typer(group, name="memo")


def run(
    config: ConfigFile,
    out: OutFolder,
    jobs: Jobs = 1,
    engine: EngineName = "local",
    as_json: AsJson = False,
) -> None:
    """Judge generators, ask and judge multimodal models, and write tables and report."""
    _judge(config, out, ("generation", "understanding"), page=True, where=(engine, jobs), as_json=as_json)


def generation(config: ConfigFile, out: OutFolder, as_json: AsJson = False) -> None:
    """Judge the generators only."""
    _judge(config, out, ("generation",), page=False, as_json=as_json)


def understanding(
    config: ConfigFile,
    out: OutFolder,
    jobs: Jobs = 1,
    engine: EngineName = "local",
    as_json: AsJson = False,
) -> None:
    """Ask and judge the multimodal models only; what is answered already is not asked again."""
    _judge(config, out, ("understanding",), page=False, where=(engine, jobs), as_json=as_json)


def report(config: ConfigFile, out: OutFolder) -> None:
    """Write the report from the archive and the answers that are there; nobody is asked anything."""
    _judge(config, out, ("generation", "understanding"), page=True, may_ask=False)


def synthetic(
    out: OutFolder,
    models: Annotated[int, typer.Option(min=1, help="Generators.")] = 12,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts per emotion.")] = 100,
    raters: Annotated[int, typer.Option(min=2, help="Raters.")] = 29,
    missing: Annotated[int, typer.Option(min=0, help="Pictures refused or rejected.")] = 55,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Make an archive in the shape of the public one, with made-up faces and votes."""
    from host_tools.memo.synthetic import Shape, make_archive

    make_archive(out, Shape(models, prompts, raters, missing, seed=seed))
    print(f"{models * prompts * 6 - missing} pictures, {raters} raters; next:")
    print(f"    python -m host_tools memo {out / 'memo.toml'} -o {out / 'results'}")


def prompts(
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV to write.")],
    per_emotion: Annotated[int, typer.Option(min=2, max=1000, help="Prompts per emotion, half of each style.")] = 100,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Make varied prompts: half name the emotion, half tell a situation that brings it about."""
    from host_tools.memo.making.prompts import make_prompts, write_prompts

    made = make_prompts(per_emotion, seed)
    write_prompts(out, made)
    print(f"{len(made)} prompts in {out}")


def generate(
    prompts: Annotated[Path, typer.Argument(help="CSV of prompt_id, emotion, style, text.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for pictures/ and pictures.csv.")],
    generator: Annotated[list[str], typer.Option("--generator", "-g", help="Profile of a generator; may be repeated.")],
    profiles: Annotated[Path | None, typer.Option(help="TOML of further profiles.")] = None,
) -> None:
    """Have generators paint the prompts; what is painted or refused already is not asked for again."""
    from edge.errors import ConfigError
    from host_tools.memo.ask.profiles import load_profiles
    from host_tools.memo.making.painters import open_painter
    from host_tools.memo.making.prompts import read_prompts
    from host_tools.memo.making.workshop import Workshop

    known = load_profiles(profiles).generators
    if unknown := [name for name in generator if name not in known]:
        raise ConfigError(f"generator {unknown[0]}", "has no profile", expected="one of " + ", ".join(sorted(known)))
    texts, workshop = read_prompts(prompts), Workshop(out)
    try:
        for name in generator:
            made = workshop.paint(name, known[name], texts, lambda n=name: open_painter(n, known[n]))  # type: ignore[misc]
            print("\n".join(made.lines(name)))
    finally:
        print(f"index in {workshop.write_index()}")
        workshop.close()


def review(
    folder: Annotated[Path, typer.Argument(help="Folder that `memo generate` wrote.")],
    reviewer: Annotated[str, typer.Option(help="Who reviews; stands beside each verdict.")] = "reviewer",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 7861,
) -> None:
    """Review what was painted, in the browser: keep, off-topic, no emotion, broken."""
    from edge.errors import DataError
    from host_tools.memo.annotation.app import serve
    from host_tools.memo.making.review import build
    from host_tools.memo.making.workshop import Workshop

    if not (folder / "workshop.sqlite").is_file():
        raise DataError(str(folder), "holds no painted pictures", fix="run `memo generate` first")
    workshop = Workshop(folder)
    print(f"{len(workshop.to_review())} pictures to review: http://{host}:{port}", flush=True)
    serve(build(workshop, reviewer), host, port)


def _judge(
    config: Path,
    out: Path,
    steps: tuple[str, ...],
    *,
    page: bool,
    may_ask: bool = True,
    where: tuple[str, int] = ("local", 1),
    as_json: bool = False,
) -> None:
    from host_tools.engine import Engine
    from host_tools.memo.run import document, run_benchmark, write_results
    from host_tools.memo.settings import MemoSettings
    from host_tools.settings import read_settings

    settings = read_settings(config, MemoSettings)
    result = run_benchmark(settings, config, steps=steps, may_ask=may_ask, engine=Engine(*where))
    write_results(result, out)
    if page:
        from host_tools.memo.report import write_report

        write_report(result, out)
    lines = [*result.archive.integrity["lines"], *result.archive.truth.summary.get("notes", [])]
    for line in lines:
        print(line, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        found = document(result)
        emit_json("memo", found.pop("options"), found)
    else:
        print(f"results in {out}")
