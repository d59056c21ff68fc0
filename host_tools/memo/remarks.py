"""What was odd about an input: each kind once, with a count and an example, so that nothing is dropped in silence."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Remarks:
    """Counts of oddities in the order in which they were met."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, n: int = 1, example: object = "") -> None:
        """Count `n` more of `what`; the first example is kept. Zero adds nothing."""
        if n:
            self.counts[what] = self.counts.get(what, 0) + n
            self.examples.setdefault(what, str(example))

    def extend(self, other: Remarks) -> None:
        """Add all counts of `other`."""
        for what, n in other.counts.items():
            self.add(what, n, other.examples[what])

    def lines(self) -> list[str]:
        """Return one line per kind."""
        return [
            f"{n} {what}" + (f" (first: {self.examples[what]})" if self.examples[what] else "")
            for what, n in self.counts.items()
        ]

    def as_rows(self) -> list[dict[str, object]]:
        """Return the counts as they go into JSON."""
        return [{"what": what, "n": n, "first": self.examples[what]} for what, n in self.counts.items()]
