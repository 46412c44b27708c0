"""What the agent does in the browser tests: each first word of a message is a small scene."""

from __future__ import annotations

import asyncio

from adapters.base import CardKind, Choice
from adapters.testing import MemoryTurn


async def play(turn: MemoryTurn) -> None:
    """Play the scene that the message names."""
    word = turn.text.split()[0]
    scene = SCENES.get(word)
    if scene is None:
        turn.say(f"You said: {turn.text}", final=True)
        return
    await scene(turn)


async def _run(turn: MemoryTurn) -> None:
    command = turn.text.removeprefix("$ ")
    if "rm" not in command:
        turn.tool("terminal", "start")
        turn.tool("terminal", "end")
        turn.say(f"```\n{command.removeprefix('echo ')}\n```\nIt ran with exit status `0`.", final=True)
        return
    ask = turn.ask(
        command,
        title="Delete a folder and everything in it",
        reason="rm with -r deletes folders and what is in them",
        rules=("fs.rm-recursive",),
        impact="37 files, 1.2 GB under the folder build; cannot be undone",
    )
    await ask.ended.wait()
    assert ask.end is not None
    if ask.end.outcome == "approved":
        turn.tool("terminal", "start")
        turn.tool("terminal", "end")
        turn.say("Done: the folder is gone.", final=True)
    else:
        turn.say(f"I did not run it: {ask.end.outcome}. {ask.reason}".strip(), final=True)


async def _count(turn: MemoryTurn) -> None:
    for number in range(1, 41):
        turn.delta(f"{number} ")
        await asyncio.sleep(0.005)
    turn.say(" ".join(str(number) for number in range(1, 41)), final=True)


async def _hang(turn: MemoryTurn) -> None:
    turn.progress("Looking through 1,204 files")
    turn.delta("Let me look")
    await turn.ended.wait()


async def _three(turn: MemoryTurn) -> None:
    asks = [turn.ask(f"rm -rf part-{number}") for number in (1, 2, 3)]
    for ask in asks:
        await ask.ended.wait()
    outcomes = [ask.end.outcome for ask in asks if ask.end is not None]
    turn.say(f"Ended: {', '.join(outcomes)}", final=True)


async def _token(turn: MemoryTurn) -> None:
    ask = turn.ask(
        "files:clean path=/srv/cache", kind=CardKind.TOKEN, token="K7Q2MX", title="Clean a folder", choices=()
    )
    await ask.ended.wait()
    assert ask.end is not None
    turn.say(f"The token was {ask.end.outcome}.", final=True)


async def _question(turn: MemoryTurn) -> None:
    choices = (Choice("blue", "Blue"), Choice("green", "Green"))
    ask = turn.ask("", kind=CardKind.QUESTION, title="Which colour?", reason="", rules=(), choices=choices)
    await ask.ended.wait()
    assert ask.end is not None
    turn.say(f"You chose {ask.end.choice or 'something else'}.", final=True)


async def _hostile(turn: MemoryTurn) -> None:
    turn.say(HOSTILE, final=True)


async def _fail(turn: MemoryTurn) -> None:
    turn.delta("Half an ans")
    turn.finish("failed", "The model did not answer in time. Try again.")


#: Text that must come out as text.
HOSTILE = (
    "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>\n```html\n<b>bold</b>\n```"
)

SCENES = {
    "$": _run,
    "count": _count,
    "hang": _hang,
    "three": _three,
    "token": _token,
    "question": _question,
    "hostile": _hostile,
    "fail": _fail,
}
