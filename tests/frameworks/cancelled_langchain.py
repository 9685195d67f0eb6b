"""A tool of LangChain's whose task waits for the person, and is cancelled or left alone: `python … FOLDER [cancel]`.

It prints "asks", and after a line of input what it did; it ends with its input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

from goex_client import Client
from goex_client.langchain import tools


async def main(folder: str, how: str) -> None:
    with Client() as goex:
        tool = next(each for each in tools(goex) if each.name == "goex_program")
        task = asyncio.create_task(tool.ainvoke({"program": "touch made", "folders": [folder]}))
        await asyncio.to_thread(sys.stdin.readline)
        if how == "cancel":
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        print(how or "left alone", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)  # the thread of a task that was left alone waits


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], "".join(sys.argv[2:])))
