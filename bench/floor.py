"""The floor: a bare aiohttp handler that inserts one row durably (WAL, ``synchronous=FULL``) and answers."""

from __future__ import annotations

import asyncio
import sys

import aiosqlite
from aiohttp import web


async def serve(path: str) -> None:
    """Serve until killed; prints the port on the first line."""
    connection = await aiosqlite.connect(path, isolation_level=None)
    await connection.execute("PRAGMA journal_mode=WAL")
    await connection.execute("PRAGMA synchronous=FULL")
    await connection.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, text TEXT)")

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        await connection.execute("INSERT INTO messages (text) VALUES (?1)", (body["text"],))
        return web.json_response({"reply": body["text"]})

    app = web.Application()
    app.router.add_post("/v1/sessions/{session}/messages", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"open http://127.0.0.1:{runner.addresses[0][1]}/\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
