"""`emogaze consent`: take, check and withdraw consent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge.commands.base import Json, KeysDir, emit_json


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="Consent records: who agreed to what, until when.", no_args_is_help=True)
    for command in (new, check, withdraw):
        group.command(command.__name__)(command)
    app.add_typer(group, name="consent")


def new(
    subject: Annotated[str, typer.Option(help="Pseudonym of who agrees.")],
    purposes: Annotated[str, typer.Option(help="Comma-separated: scores, gaze, features, physiology, redacted_video.")],
    by: Annotated[str, typer.Option(help="Who takes the consent.")],
    key: Annotated[Path, typer.Option(help="The operator's private key.")],
    days: Annotated[float, typer.Option(help="How long it is valid.")] = 365,
    output: Annotated[Path, typer.Option("-o", help="The record.")] = Path("consent.json"),
) -> None:
    """Write a consent record, signed by the operator."""
    from datetime import datetime, timezone

    from edge.consent import new_consent
    from edge.files import write_json
    from edge.keys import read_private

    names = [name.strip() for name in purposes.split(",") if name.strip()]
    try:
        record = new_consent(read_private(key), subject, names, days, by, now=datetime.now(timezone.utc))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    write_json(output, record)
    print(f"{output}: {record['id']}, {', '.join(record['purposes'])} until {record['expires']}")
    if "raw_video" in names:
        print("  raw_video is agreed to, but no sink of this version records pictures as the camera gave them")


def check(
    file: Path,
    recordings: Annotated[
        Path | None, typer.Option(help="The recording folder (record.dir): was the consent withdrawn there?")
    ] = None,
    dir: KeysDir = "",
    json: Json = False,
) -> None:
    """Check a consent record as the runtime does: exit 0 if it unlocks recording, 1 with the reason.

    A withdrawal lies in the recording folder, so it is seen only with --recordings.
    """
    from datetime import datetime, timezone

    from edge.consent import PURPOSES, ConsentError, consent_problem, read_consent
    from edge.keys import KeyRing, keys_dir

    now = datetime.now(timezone.utc)
    consent = read_consent(file, KeyRing(keys_dir(dir)).operators(), now=now)
    if recordings and (problem := consent_problem(recordings, consent, now=now)):
        raise ConsentError(str(file), problem, fix="take a new one")
    if json:
        body = {"id": consent.id, "subject": consent.subject, "purposes": sorted(consent.purposes)}
        emit_json("consent", {"file": str(file)}, {**body, "expires": consent.expires.isoformat()})
        return
    print(f"{file}: {consent.id}, subject {consent.subject}, until {consent.expires:%Y-%m-%d}")
    for purpose, sentence in PURPOSES.items():
        print(f"  {'yes' if consent.allows(purpose) else 'no ':3} {purpose}: {sentence}")
    if not recordings:
        print("  withdrawal not looked for: name the recording folder with --recordings")


def withdraw(
    consent: Annotated[str, typer.Argument(help="Id of the consent, 16 hex digits.")],
    recordings: Annotated[Path, typer.Option(help="The recording folder (record.dir).")],
    by: Annotated[str, typer.Option(help="Who withdraws it.")],
    dir: KeysDir = "",
) -> None:
    """Withdraw a consent: its sessions lose their keys, tombstones stay, and no session starts under it any more."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.retention import FLASH, withdraw

    tombstones = withdraw(recordings, consent, KeyRing(keys_dir(dir)), by=by)
    print(f"consent {consent} is withdrawn; {len(tombstones)} session(s) can't be opened any more")
    for tombstone in tombstones:
        print(f"  {tombstone['session']}")
        for copy in tombstone["exports"]:
            print(f"    exported copy, delete it yourself: {copy}")
    if tombstones:
        print(f"{FLASH}; copies made on other machines are not known here")
