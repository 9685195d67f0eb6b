"""Runs one line of Python in swe-rex's one container for each line that it reads, and says how many milliseconds that
took.

It is run by the interpreter of swe-rex's own environment (`make peers`), with the image as its argument. The server in
the container is the same environment's, mounted; it is reached over the host's network, as it has no other way here.
"""

import asyncio
import logging
import socket
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from swerex.deployment.docker import DockerDeployment
from swerex.runtime.abstract import Command

COMMAND = ["python3", "-I", "-c", "print(sum(range(10)))"]
SERVER = '#!/bin/sh\nPYTHONPATH=/peer/site exec python3 -m swerex.server --port PORT "$@"\n'


def put(folder: str, port: int) -> None:
    """Put the command there that starts the server in the container."""
    Path(folder).chmod(0o755)
    server = Path(folder, "swerex-remote")
    server.write_text(SERVER.replace("PORT", str(port)))
    server.chmod(0o755)


async def main() -> None:
    logging.disable(logging.CRITICAL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        put(folder, port)
        mounts = ["-v", f"{folder}:/peer/bin:ro", "-v", f"{sysconfig.get_path('purelib')}:/peer/site:ro"]
        arguments = ["--network", "host", *mounts, "-e", "PATH=/peer/bin:/usr/bin:/bin"]
        container = DockerDeployment(image=sys.argv[1], pull="never", port=port, docker_args=arguments)
        await container.start()
        try:
            for _ in sys.stdin:
                began = time.perf_counter_ns()
                result = await container.runtime.execute(Command(command=COMMAND, timeout=20))
                taken = (time.perf_counter_ns() - began) / 1e6
                assert result.stdout == "45\n", result
                print(taken, flush=True)
        finally:
            await container.stop()


if __name__ == "__main__":
    asyncio.run(main())
