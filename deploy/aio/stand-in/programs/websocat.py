#!/usr/bin/python3
"""Stands in for websocat: ws-l:HOST:PORT tcp:HOST:PORT, binary. Only for tests."""

from __future__ import annotations

import asyncio
import sys

from websockets.asyncio.server import ServerConnection, serve


def address(prefix: str) -> tuple[str, int]:
    (word,) = [word.removeprefix(prefix).replace('"', "") for word in sys.argv if word.startswith(prefix)]
    host, _, port = word.rpartition(":")
    return host, int(port)


async def bridge(viewer: ServerConnection) -> None:
    reader, writer = await asyncio.open_connection(*address("tcp:"))

    async def to_viewer() -> None:
        while data := await reader.read(65536):
            await viewer.send(data)
        await viewer.close()

    async def to_display() -> None:
        async for message in viewer:
            writer.write(message if isinstance(message, bytes) else message.encode())
            await writer.drain()
        writer.close()

    async with asyncio.TaskGroup() as both:
        both.create_task(to_viewer())
        both.create_task(to_display())


async def main() -> None:
    async with serve(bridge, *address("ws-l:")) as server:
        await server.serve_forever()


asyncio.run(main())
