"""Make a session's identity in a process of its own, so that it is gone from memory once it is encrypted.

Run as a module, with the study's recipients on stdin, one a line. Prints the session's recipient, then the identity
encrypted to the study in base64. Python can't wipe a string; the kernel wipes the pages of a process that ends.
"""

import base64
import resource
import sys

import pyrage


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    study = [pyrage.x25519.Recipient.from_str(line) for line in sys.stdin.read().split()]
    identity = pyrage.x25519.Identity.generate()
    sealed = pyrage.encrypt(f"{identity}\n".encode(), study)
    print(identity.to_public())
    print(base64.b64encode(sealed).decode())


if __name__ == "__main__":
    main()
