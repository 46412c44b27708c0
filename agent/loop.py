"""One conversation turn: model, tool calls, results, and again, until there is an answer."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

import structlog

from agent.asking import ask_model
from agent.calls import run_calls
from agent.exceptions import ModelError
from agent.history import clean_text, repair, running_turn, unanswered
from agent.models.base import (
    MAX_CALLS,
    AssistantMessage,
    Done,
    Message,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolMessage,
)
from agent.repeats import Repeats
from agent.tools.arguments import MAX_ARGUMENTS_CHARS
from agent.tools.registry import ToolResult
from agent.turn_context import Answer, TurnContext

_log = structlog.get_logger(__name__)

#: So many calls of one message are kept and answered at all.
_KEPT_CALLS = 4 * MAX_CALLS
_NAME_CHARS = 200

_TOO_MANY = f"None of these calls was run: at most {MAX_CALLS} may come in one message. Send fewer at a time."
_EMPTY = "The model gave an empty answer twice. Say it in other words, or try again."
_DECLINED = "The model declined to answer this."
_CUT_SHORT = '(The answer ends here because it reached the model\'s length limit. Say "go on" for the rest.)'
_STUCK = (
    "I stopped: the same step (`{name}`) gave the same result {count} times in a row. "
    "Tell me what to do differently, or what may be in the way."
)
_LIMIT = '(I stopped after {count} steps, the limit of one turn. Say "go on" and I continue from here.)'
_LAST_STEP = (
    "# Last step\n\nThe limit of steps of this turn is reached: no tool can be called any more. Say what was done, "
    "what was found and what is still open."
)


async def run_conversation(ctx: TurnContext) -> Answer:
    """Take the session's conversation from where its journal stands to an answer.

    Every assistant message with calls and every result is in the journal before the next step, so that after a crash
    this function goes on there: calls without a result are taken up under the same request ids, then the model is
    asked. The answer itself is not journalled here; text that came along with calls is.

    Returns:
        The answer; ``failed`` where it explains why there is none. Errors of the model and of tools never raise.

    Raises:
        Exception: whatever the journal raised; without a record there is no next step.
        asyncio.CancelledError: after every call of this turn has ended.
    """
    try:
        return await _Conversation(ctx, await ctx.journal.history()).run()
    except ModelError as error:
        _log.warning("model_gave_no_answer", model=ctx.model.name, kind=type(error).__name__, why=str(error))
        return Answer(error.person, failed=True)


class _Conversation:
    def __init__(self, ctx: TurnContext, messages: list[Message]) -> None:
        self._ctx = ctx
        self._messages = messages
        self._repeats = Repeats()
        self._repeats.replay(running_turn(messages))

    async def run(self) -> Answer:
        if pending := unanswered(self._messages):
            self._ctx.events.progress("Going on where this was interrupted.")
            await self._run(pending, resumed=True)
        may_retry = True
        while not self._repeats.stuck:
            if not self._ctx.budget.spend():
                return await self._last_word()
            done = await self._ask()
            if done.message.calls and done.stop is not StopReason.REFUSAL:
                await self._act(done.message)
                continue
            answer = self._answer(done)
            if answer is not None:
                return answer
            if not may_retry:
                return Answer(_EMPTY, failed=True)
            may_retry = False
        return self._stuck()

    async def _ask(self, *, last: bool = False) -> Done:
        request = ModelRequest(
            system=f"{self._ctx.system}\n\n{_LAST_STEP}" if last else self._ctx.system,
            messages=tuple(repair(self._messages)),
            tools=() if last else self._ctx.tools.specs(),
            max_output_tokens=self._ctx.limits.max_output_tokens,
        )
        return await ask_model(self._ctx, request)

    async def _act(self, message: AssistantMessage) -> None:
        message = _taken_in(message)
        await self._ctx.journal.assistant(message)
        self._messages.append(message)
        self._repeats.next_step()
        await self._run(message.calls)

    async def _run(self, calls: tuple[ToolCall, ...], *, resumed: bool = False) -> None:
        message = next(message for message in reversed(self._messages) if isinstance(message, AssistantMessage))
        if len(message.calls) <= MAX_CALLS:
            await run_calls(self._ctx, calls, self._record, resumed=resumed)
            return
        for call in calls:
            await self._record(call, ToolResult(_TOO_MANY, ok=False))

    async def _record(self, call: ToolCall, result: ToolResult) -> None:
        text = self._repeats.noted(call, clean_text(result.text))
        message = ToolMessage(call.id, call.name, text, result.ok)
        await self._ctx.journal.tool_result(message)
        self._messages.append(message)

    def _answer(self, done: Done) -> Answer | None:
        """What a message without calls amounts to; None when it is empty and nothing was said before."""
        text = clean_text(done.message.text).strip()
        if text:
            return Answer(f"{text}\n\n{_CUT_SHORT}" if done.stop is StopReason.LENGTH else text)
        if done.stop is StopReason.REFUSAL:
            return Answer(_DECLINED, failed=True)
        said = _said(self._messages)
        return Answer(said) if said else None

    async def _last_word(self) -> Answer:
        """The answer at the limit: one more request, without tools, and the way to go on."""
        limit = _LIMIT.format(count=self._ctx.budget.limit)
        _log.info("iteration_limit_reached", limit=self._ctx.budget.limit)
        try:
            answer = self._answer(await self._ask(last=True))
        except ModelError as error:
            return Answer(f"{error.person}\n\n{limit}", failed=True)
        if answer is None:
            return Answer(limit, failed=True)
        return replace(answer, text=f"{answer.text}\n\n{limit}")

    def _stuck(self) -> Answer:
        last = next(message for message in reversed(self._messages) if isinstance(message, ToolMessage))
        _log.warning("turn_ended_in_a_circle", tool=last.name)
        return Answer(_STUCK.format(name=last.name, count=self._repeats.count), failed=True)


def _taken_in(message: AssistantMessage) -> AssistantMessage:
    """The message as it is kept: call ids of our own, which become request ids, everything bounded and encodable."""
    calls = tuple(
        ToolCall(
            f"call_{uuid.uuid4().hex}",
            clean_text(call.name[:_NAME_CHARS]),
            # A lone surrogate becomes its escape, which no parser takes: such a call must fail, not run changed.
            call.arguments[: MAX_ARGUMENTS_CHARS + 1].encode(errors="backslashreplace").decode(),
        )
        for call in message.calls[:_KEPT_CALLS]
    )
    return AssistantMessage(clean_text(message.text), calls)


def _said(messages: Sequence[Message]) -> str:
    """The latest text that came along with calls in this turn."""
    spoken = (
        message.text.strip() for message in reversed(running_turn(messages)) if isinstance(message, AssistantMessage)
    )
    return next((text for text in spoken if text), "")
