"""The key folder: secrets are 0600, rotation keeps what it must, and every mistake is one clear line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyrage
import pytest

from edge.errors import KeyFileError
from edge.keys import KeyRing, fingerprint, parse_public, read_wire_pair

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    ring = KeyRing(tmp_path / "keys")
    assert ring.create() == ["signing", "wire"]
    return ring


def test_secrets_are_for_the_owner_alone(ring):
    assert oct(ring.folder.stat().st_mode & 0o777) == "0o700"
    assert {p.name: oct(p.stat().st_mode & 0o777) for p in ring.folder.glob("*.key")} == {
        "signing.key": "0o600",
        "wire.key": "0o600",
    }


def test_keys_are_never_made_anew(ring):
    before = (ring.folder / "signing.key").read_bytes()
    assert ring.create() == []
    assert (ring.folder / "signing.key").read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660], ids=oct)
def test_a_secret_that_others_can_read_is_refused(ring, mode):
    (ring.folder / "signing.key").chmod(mode)
    with pytest.raises(KeyFileError, match=r"others can read this secret.*chmod 600"):
        ring.signing()


def test_rotation_keeps_the_old_public_key(ring):
    old = ring.signing().public_key().public_bytes_raw()
    assert ring.rotate("signing") == fingerprint(old)
    new = ring.signing().public_key().public_bytes_raw()
    assert set(ring.signers()) == {fingerprint(old), fingerprint(new)}
    wire = ring.wire()
    ring.rotate("wire")
    assert ring.wire() != wire


def test_recipients_need_an_escrow(ring):
    with pytest.raises(KeyFileError, match="names 0 recipient"):
        ring.recipients()
    one = str(pyrage.x25519.Identity.generate().to_public())
    ring.add_recipient("study", one)
    ring.add_recipient("again", one)
    with pytest.raises(KeyFileError, match=r"names 1 recipient.*at least 2"):
        ring.recipients()
    ring.add_recipient("escrow", str(pyrage.x25519.Identity.generate().to_public()))
    assert set(ring.recipients()) == {"study", "again", "escrow"}


def test_a_secret_identity_is_refused_as_a_recipient(ring):
    with pytest.raises(KeyFileError, match="secret key, which must never reach the device"):
        ring.add_recipient("study", str(pyrage.x25519.Identity.generate()))


def test_a_bad_line_is_named(ring):
    (ring.folder / "recipients.txt").write_text("study age1nonsense\n")
    with pytest.raises(KeyFileError, match="line 1: is no recipient"):
        ring.recipients()


@pytest.mark.parametrize(
    "text", ["", "ed25519", "ed25519 AAAA", "curve abc", "-----BEGIN PRIVATE KEY-----"], ids=lambda t: t[:12] or "empty"
)
def test_no_public_key(text):
    with pytest.raises(KeyFileError, match="is no public key"):
        parse_public(text, "file")


@pytest.mark.parametrize("name", ["../x", "", "a b", ".hidden"], ids=["path", "empty", "space", "dot"])
def test_names_cannot_leave_the_folder(ring, name):
    with pytest.raises(KeyFileError, match="can't be a name"):
        ring.trust("clients", name, "curve " + "a" * 40)


def test_missing_keys_say_how_to_make_them(tmp_path):
    with pytest.raises(KeyFileError, match=r"no such key.*emogaze keys new"):
        KeyRing(tmp_path).signing()
    (tmp_path / "wire.key").write_text("curve short")
    (tmp_path / "wire.key").chmod(0o600)
    with pytest.raises(KeyFileError, match="is no wire key"):
        read_wire_pair(tmp_path / "wire.key")


def test_the_list_shows_no_secret(ring):
    text = str(list(ring.list()))
    assert ring.wire()[1] not in text
    assert "PRIVATE" not in text
    assert ring.wire()[0] not in text or fingerprint(ring.wire()[0].encode()) in text


def test_a_hardened_process_leaves_no_core_and_cannot_be_traced():
    code = (
        "from edge.keys import harden_process\n"
        "import ctypes, resource\n"
        "harden_process()\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(0, 0) 0"
