"""`emogaze keys`: make, list and rotate the keys of this device, and say whom it trusts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from edge.commands.base import Json, emit_json

Dir = Annotated[str, typer.Option("--dir", help="Key folder; default EMOGAZE_KEYS, else ~/.config/emogaze/keys.")]


def add(app: typer.Typer) -> None:
    group = typer.Typer(help="The keys of this device, and whom it trusts.", no_args_is_help=True)
    for command in (new, list_, rotate, client, recipient, trust, operator, identity):
        group.command(command.__name__.rstrip("_"))(command)
    app.add_typer(group, name="keys")


def new(dir: Dir = "") -> None:
    """Make the signing key and the wire key of this device where they are missing."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import append_audit

    ring = KeyRing(keys_dir(dir))
    made = ring.create()
    if made:
        append_audit(ring, "keys_new", keys=made)
    print(f"{ring.folder}: made {' and '.join(made)}" if made else f"{ring.folder}: both keys are there already")
    print(
        "No key on this device can decrypt a recording. Add the study's recipients: emogaze keys recipient NAME age1..."
    )


def list_(dir: Dir = "", json: Json = False) -> None:
    """List every key with its fingerprint, and what is wrong with it. Secrets are never printed."""
    from dataclasses import asdict

    from edge.keys import KeyRing, keys_dir

    infos = list(KeyRing(keys_dir(dir)).list())
    if json:
        emit_json("keys", {"dir": str(keys_dir(dir))}, {"keys": [asdict(info) for info in infos]})
        return
    for info in infos:
        print(f"{info.use:10} {info.name:16} {info.problem or info.fingerprint}")


def rotate(key: Annotated[Literal["signing", "wire"], typer.Argument(help="signing or wire")], dir: Dir = "") -> None:
    """Replace a key by a fresh one. Old signatures stay verifiable; old wire connections are refused."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import append_audit

    ring = KeyRing(keys_dir(dir))
    old = ring.rotate(key)
    append_audit(ring, "keys_rotate", key=key, old=old)
    print(f"{key}: {old} is replaced" + ("; give clients the new wire.pub" if key == "wire" else ""))


def client(
    name: Annotated[str, typer.Argument(help="The client's name.")],
    output: Annotated[Path | None, typer.Option("-o", help="The client's key file; default NAME.key here.")] = None,
    allow: Annotated[str, typer.Option(help="Some of events, preview, control; with commas.")] = "events",
    dir: Dir = "",
) -> None:
    """Make a key pair for a client, and let it connect. The key file goes to the client; delete it here."""
    from edge.errors import KeyFileError
    from edge.keys import KeyRing, keys_dir, new_wire_pair, parse_client
    from edge.session.audit import append_audit

    ring = KeyRing(keys_dir(dir))
    device = ring.wire()[0]
    path = output or Path(f"{name}.key")
    if path.exists():
        raise KeyFileError(str(path), "is there already", fix="name another file with -o")
    parse_client(f"curve {'0' * 40} {allow}", f"--allow {allow}")
    public = new_wire_pair(path)
    ring.trust("clients", name, f"curve {public} {allow}")
    append_audit(ring, "keys_client", name=name, rights=allow)
    print(f"{path}: hand it to {name} and delete it here; the device's key is {device}")


def recipient(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    key: Annotated[str, typer.Argument(help="age1...")],
    dir: Dir = "",
) -> None:
    """Add a recipient of the study. Recording needs two; keep one for escrow, away from the study."""
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import append_audit

    ring = KeyRing(keys_dir(dir))
    ring.add_recipient(name, key)
    append_audit(ring, "keys_recipient", name=name, recipient=key)
    print(f"{ring.folder / 'recipients.txt'}: {name} can open the sessions recorded from now on")


def trust(
    kind: Annotated[Literal["operators", "clients", "models"], typer.Argument(help="operators, clients or models")],
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    file: Annotated[Path, typer.Argument(help="The public key file.")],
    dir: Dir = "",
) -> None:
    """Trust a public key: an operator's for consent, a client's to connect, a publisher's for model artefacts."""
    from edge.errors import KeyFileError
    from edge.keys import KeyRing, keys_dir
    from edge.session.audit import append_audit

    ring = KeyRing(keys_dir(dir))
    try:
        line = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(str(file), f"can't be read: {error}") from None
    ring.trust(kind, name, line)
    append_audit(ring, "keys_trust", use=kind, name=name)
    print(f"{name} is among the {kind} that this device trusts")


def operator(
    output: Annotated[Path, typer.Option("-o", help="The private key; the public one goes beside it.")],
) -> None:
    """Make a key pair of an operator or a publisher, away from the device, which trusts it with `keys trust`."""
    from edge.errors import KeyFileError
    from edge.keys import fingerprint, new_signing_pair

    if output.exists():
        raise KeyFileError(str(output), "is there already", fix="choose another name; a key is never overwritten")
    public = new_signing_pair(output)
    print(f"{output} (keep it secret) and {output.with_suffix('.pub')}: {fingerprint(public.public_bytes_raw())}")


def identity(
    output: Annotated[Path, typer.Option("-o", help="The identity file; never bring it to a device.")],
) -> None:
    """Make an age identity of a study, as `age-keygen` does, away from the device; its recipient is printed."""
    from edge.errors import KeyFileError
    from edge.keys import age_library, write_secret

    if output.exists():
        raise KeyFileError(str(output), "is there already", fix="choose another name; a key is never overwritten")
    made = age_library()[1].Identity.generate()
    write_secret(output, f"# recipient: {made.to_public()}\n{made}\n".encode())
    print(made.to_public())
