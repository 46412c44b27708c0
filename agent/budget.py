"""The bound on model iterations of one conversation turn, shared by a parent and its children."""

from __future__ import annotations

#: No configuration raises the number of iterations of a turn above this.
MAX_ITERATIONS = 200


class IterationBudget:
    """Counts model iterations down; the only loop bound of a turn that no tool can stretch."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"an iteration budget needs at least 1, got {limit}")
        self.limit = min(limit, MAX_ITERATIONS)
        self._spent = 0

    @property
    def spent(self) -> int:
        """Iterations used so far."""
        return self._spent

    @property
    def left(self) -> int:
        """Iterations still to be had."""
        return self.limit - self._spent

    def spend(self) -> bool:
        """Take one iteration; False when none is left."""
        if self._spent >= self.limit:
            return False
        self._spent += 1
        return True
