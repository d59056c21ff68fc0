"""What was spent of a privacy budget. It refuses to overspend, and spends before anything is released."""

from __future__ import annotations

import fcntl
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.errors import DataError
from edge.files import decode_document

SLACK = 1e-9  #: for sums of decimal fractions


@dataclass(frozen=True, slots=True)
class Balance:
    """What `key` has spent, and its budget."""

    key: str
    epsilon: float
    delta: float
    budget_epsilon: float
    budget_delta: float


class Ledger:
    """A file of JSON lines: the budget per key in the first, then one line per release.

    Releases about the same key compose by adding up epsilon and delta (basic composition: Dwork and Roth 2014, theorem
    3.16). A key is a session, or a person's pseudonym: whatever the unit of privacy belongs to.

    Parameters
    ----------
    path : Path
        The file; made with the budget if it isn't there.
    budget : (float, float)
        epsilon and delta that each key may spend in all. A file that is there must have been made with the same.

    Raises
    ------
    DataError
        The file is of another budget, or no ledger.
    """

    def __init__(self, path: Path, budget: tuple[float, float]) -> None:
        self.path = path
        self.budget_epsilon, self.budget_delta = budget
        if not (budget[0] > 0 and math.isfinite(budget[0]) and 0 <= budget[1] < 1):
            raise ValueError(f"budget: expected epsilon > 0 and 0 <= delta < 1, got {budget}")

    def balance(self, key: str) -> Balance:
        """Return what was spent for `key`."""
        return self._balance(key, self._lines(self.path.read_text() if self.path.exists() else ""))

    def spend(self, keys: list[str], cost: tuple[float, float], what: str) -> None:
        """Write down that `what` costs each of `keys` (epsilon, delta); durable when it returns, so release after it.

        Raises
        ------
        DataError
            A key has less left: nothing is spent for any of them.
        """
        epsilon, delta = cost
        if not (epsilon > 0 and math.isfinite(epsilon) and 0 <= delta < 1):
            raise ValueError(f"cost: expected epsilon > 0 and 0 <= delta < 1, got {cost}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            lines = self._lines(text)
            for key in keys:
                self._check(self._balance(key, lines), epsilon, delta)
            if not text:
                budget = {
                    "schema": "emogaze.privacy_ledger",
                    "epsilon": self.budget_epsilon,
                    "delta": self.budget_delta,
                }
                file.write(json.dumps(budget) + "\n")
            for key in keys:
                file.write(json.dumps({"key": key, "epsilon": epsilon, "delta": delta, "what": what}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _check(self, balance: Balance, epsilon: float, delta: float) -> None:
        over_epsilon = balance.epsilon + epsilon > balance.budget_epsilon * (1 + SLACK)
        over_delta = balance.delta + delta > balance.budget_delta * (1 + SLACK)
        if over_epsilon or over_delta:
            left = balance.budget_epsilon - balance.epsilon, balance.budget_delta - balance.delta
            raise DataError(
                str(self.path),
                f"the privacy budget of {balance.key} doesn't allow this",
                expected=f"epsilon <= {left[0]:g} and delta <= {left[1]:g}",
                got=f"epsilon {epsilon:g}, delta {delta:g}",
                fix="release less; a new ledger would void the guarantee for what was released already",
            )

    def _balance(self, key: str, lines: list[dict[str, Any]]) -> Balance:
        mine = [line for line in lines if line.get("key") == key]
        spent = math.fsum(line["epsilon"] for line in mine), math.fsum(line["delta"] for line in mine)
        return Balance(key, *spent, self.budget_epsilon, self.budget_delta)

    def _lines(self, text: str) -> list[dict[str, Any]]:
        try:
            lines = [decode_document(line) for line in text.splitlines()]
            header = (lines[0]["schema"], lines[0]["epsilon"], lines[0]["delta"]) if lines else None
        except (ValueError, KeyError, TypeError):
            raise DataError(str(self.path), "is no privacy ledger") from None
        expected = ("emogaze.privacy_ledger", self.budget_epsilon, self.budget_delta)
        if header is not None and header != expected:
            raise DataError(
                str(self.path), "was made with another budget", expected=str(expected[1:]), got=str(header[1:])
            )
        return lines[1:]
