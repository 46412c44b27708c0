"""One request to the model, watched by two limits: silence between events, and the whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import structlog

from agent.exceptions import ModelCut, ModelError, ModelSilent, ModelTooSlow
from agent.models.base import Done, ModelEvent, ModelRequest, TextDelta
from agent.turn_context import TurnContext

_log = structlog.get_logger(__name__)


async def ask_model(ctx: TurnContext, request: ModelRequest) -> Done:
    """Stream one answer; every event is progress, every piece of text goes to ``ctx.events``.

    Raises:
        ModelError: whatever kept the model from answering, with a sentence for the person.
    """
    with ctx.activity.lease("model", ctx.limits.model_request_s):
        try:
            async with ctx.clock.timeout(ctx.limits.model_request_s):
                return await _follow(ctx, request)
        except ModelError:
            raise
        except TimeoutError as error:
            raise ModelTooSlow(
                f"no end within {ctx.limits.model_request_s:g} s",
                person=f"The model was not done after {ctx.limits.model_request_s:g} s, so I stopped it. "
                "Try again, or ask for less at once.",
            ) from error
        except Exception as error:
            # A provider's own failure must not take the turn's answer with it; the log keeps what it was.
            _log.warning("model_failed", model=ctx.model.name, exc_info=True)
            raise ModelError(
                f"unexpected {type(error).__name__} from the model",
                person="The model failed in a way that I do not know. Try again; the log says more.",
            ) from error


async def _follow(ctx: TurnContext, request: ModelRequest) -> Done:
    async with AsyncExitStack() as stack:
        stream = ctx.model.stream(request)
        close = getattr(stream, "aclose", None)
        if close is not None:
            stack.push_async_callback(close)
        while (event := await _next(ctx, stream)) is not None:
            ctx.activity.touch("model")
            if isinstance(event, TextDelta):
                ctx.events.delta(event.text)
            elif isinstance(event, Done):
                return event
    raise ModelCut(
        "the stream ended before its end", person="The connection to the model broke off in mid-answer. Try again."
    )


async def _next(ctx: TurnContext, stream: AsyncIterator[ModelEvent]) -> ModelEvent | None:
    limit = ctx.limits.model_silence_s
    try:
        async with ctx.clock.timeout(limit):
            return await anext(stream, None)
    except TimeoutError as error:
        raise ModelSilent(
            f"no event for {limit:g} s",
            person=f"The model has sent nothing for {limit:g} s; it is slow or overloaded. Try again in a moment.",
        ) from error
