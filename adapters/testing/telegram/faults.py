"""What can go wrong on the wire, told to the fake in advance."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from adapters.testing.telegram.exceptions import ApiRefusal


class Kind(enum.Enum):
    """How a call fails."""

    #: An answer with ``ok: false``.
    REFUSE = "refuse"
    #: An error of a server in between, whose body is not JSON.
    GATEWAY = "gateway"
    #: The connection ends before the call had any effect.
    CUT_BEFORE = "cut_before"
    #: The connection ends after the call had its effect.
    CUT_AFTER = "cut_after"
    #: No answer, ever.
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class Fault:
    """One call that fails."""

    kind: Kind
    refusal: ApiRefusal | None = None
    status: int = 502


@dataclass
class Faults:
    """Faults that wait, by method; each is used up by one call.

    Method names are those of the API (``sendMessage``), in any case. A fault for ``*`` hits any method but
    ``getUpdates``.
    """

    waiting: dict[str, list[Fault]] = field(default_factory=dict)

    def flood(self, retry_after: int, *, times: int = 1, method: str = "sendMessage") -> None:
        """Refuse with 429."""
        refusal = ApiRefusal(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})
        self._add(method, times, Fault(Kind.REFUSE, refusal))

    def refuse(self, code: int, description: str, *, times: int = 1, method: str = "sendMessage") -> None:
        """Refuse with any status and description."""
        self._add(method, times, Fault(Kind.REFUSE, ApiRefusal(code, description)))

    def server_error(self, status: int = 502, *, times: int = 1, method: str = "sendMessage") -> None:
        """Answer with a page of HTML, as a proxy in between does."""
        self._add(method, times, Fault(Kind.GATEWAY, status=status))

    def cut_before(self, *, times: int = 1, method: str = "sendMessage") -> None:
        """Close the connection; the call had no effect."""
        self._add(method, times, Fault(Kind.CUT_BEFORE))

    def cut_after(self, *, times: int = 1, method: str = "sendMessage") -> None:
        """Close the connection; the call had its effect."""
        self._add(method, times, Fault(Kind.CUT_AFTER))

    def hang(self, *, times: int = 1, method: str = "sendMessage") -> None:
        """Take the call and never answer."""
        self._add(method, times, Fault(Kind.HANG))

    def clear(self) -> None:
        """Forget what has not been used up."""
        self.waiting.clear()

    def take(self, method: str) -> Fault | None:
        """The fault of this call."""
        for name in (method.lower(), "*"):
            queue = self.waiting.get(name)
            if queue and not (name == "*" and method.lower() == "getupdates"):
                return queue.pop(0)
        return None

    def _add(self, method: str, times: int, fault: Fault) -> None:
        self.waiting.setdefault(method.lower(), []).extend([fault] * times)
