"""What was left out of a corpus, counted by reason."""


class Dropped:
    """Counts of what was left out, with the place of the first."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._firsts: dict[str, str] = {}

    def add(self, reason: str, place: str, count: int = 1) -> None:
        """Count something that is left out."""
        self._firsts.setdefault(reason, place)
        self._counts[reason] = self._counts.get(reason, 0) + count

    def merge(self, peer: "Dropped") -> None:
        """Count what another part of the corpus left out."""
        for reason, count in peer._counts.items():
            self.add(reason, peer._firsts[reason], count)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def lines(self) -> list[str]:
        """One line for each reason."""
        return [
            f"{reason} left out: {count} (first: {self._firsts[reason]})"
            for reason, count in self._counts.items()
        ]
