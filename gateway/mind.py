"""What turns think with: the model, the tools and the system prompt."""

from __future__ import annotations

from agent.control.gate import Gate
from agent.models.base import Model
from agent.prompt import system_prompt
from agent.tools.files import file_tools
from agent.tools.registry import Registry
from agent.tools.terminal import terminal_tool
from gateway.config import Config


def tools_of(settings: Config, gate: Gate) -> Registry:
    """Every tool of this version; each reaches the system through ``gate`` alone."""
    limits = settings.limits
    terminal = terminal_tool(
        gate, default_timeout_s=round(limits.terminal_s), max_timeout_s=round(limits.terminal_max_s)
    )
    return Registry([terminal, *file_tools(gate, read_s=limits.read_s, write_s=limits.write_s)])


class FixedMind:
    """Fulfils :class:`gateway.session.Mind` with one model and one set of tools for every turn."""

    def __init__(self, model: Model, tools: Registry, *, language: str) -> None:
        self._tools = tools
        self._model = model
        self._system = system_prompt(tools, language=language)

    def model(self) -> Model:
        """The model; it keeps nothing between requests."""
        return self._model

    def tools(self) -> Registry:
        """Every tool."""
        return self._tools

    def system(self) -> str:
        """The stable prefix of every request."""
        return self._system
