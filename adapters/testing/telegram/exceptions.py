"""Why the fake refuses a call, in the words of the Bot API.

::

    ApiRefusal        an answer with ``ok: false``
    +-- BadMarkup     the text does not parse in its parse mode
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiRefusal(Exception):
    """The call fails with a status and a description.

    Attributes:
        code: HTTP status and ``error_code``.
        description: as the Bot API words it.
        parameters: ``retry_after`` or ``migrate_to_chat_id``, where there is one.
    """

    def __init__(self, code: int, description: str, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = dict(parameters or {})

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        body: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            body["parameters"] = self.parameters
        return body


class BadMarkup(ApiRefusal):
    """The text does not parse; nothing is sent."""

    def __init__(self, detail: str) -> None:
        super().__init__(400, f"Bad Request: can't parse entities: {detail}")


def bad_request(detail: str, **parameters: Any) -> ApiRefusal:
    """A refusal with status 400."""
    return ApiRefusal(400, f"Bad Request: {detail}", parameters)
