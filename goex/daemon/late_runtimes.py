"""The runtimes by the kind of action, each loaded when the first action of its kind comes.

What most daemons never do (a program that calls services, SQL, a server's tools) takes neither their memory nor their
start. A runtime that a daemon has made stays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from goex.config import Config
from goex.engine.tasks import TaskRuntime
from goex.paths import Paths
from mapper.catalog import Catalog
from policies.errors import Unavailable
from policies.reversions import ReversionSet
from runtimes.base import Runtime
from runtimes.files.runtime import FilesRuntime
from runtimes.sandbox.docker import DockerSandbox
from vault.lease import Lend

if TYPE_CHECKING:
    from runtimes.gateway.client import GatewayClient


class LateRuntimes(Mapping[str, Runtime]):
    """`files` is there from the start: what its dry runs left behind is removed then. Any thread may look one up."""

    def __init__(
        self,
        paths: Paths,
        config: Config,
        files: FilesRuntime,
        sandbox: DockerSandbox,
        catalog: Catalog,
        reversions: ReversionSet,
        lend: Lend,
    ) -> None:
        self._paths = paths
        self._config = config
        self._files = files
        self._sandbox = sandbox
        self._catalog = catalog
        self._reversions = reversions
        self._lend = lend
        self._makers: Mapping[str, Callable[[], Runtime]] = {
            "calls": self._calls,
            "files": lambda: files,
            "sql": self._sql,
            "task": TaskRuntime,
            "mongo": self._mongo,
            "code": self._code,
        }
        self._made: dict[str, Runtime] = {}
        self._gateway: GatewayClient | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __getitem__(self, kind: str) -> Runtime:
        if kind not in self._made:
            with self._lock:
                if self._closed:
                    raise Unavailable("The daemon is stopping.", next_step="Ask again when it is back.")
                if kind not in self._made:
                    self._made[kind] = self._makers[kind]()
        return self._made[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    async def reap(self) -> None:
        """Remove what dry runs of an earlier daemon left: those on folders alone leave something."""
        await self._files.reap()

    async def close(self) -> None:
        """End the gateway, if there is one. No runtime is made any more, and with it no gateway."""
        self._closed = True
        if self._gateway is not None:
            await self._gateway.stop()

    async def forget(self) -> None:
        """End the gateway's process, whose memory has what was lent to it. It starts again when it is needed."""
        if self._gateway is not None:
            await self._gateway.end()

    def _the_gateway(self) -> GatewayClient:
        from runtimes.gateway.client import GatewayClient

        if self._gateway is None:
            self._gateway = GatewayClient(self._paths.run_dir / "gateway")
        return self._gateway

    def _calls(self) -> Runtime:
        from runtimes.rest.runtime import RestRuntime
        from runtimes.servers.definition import Servers
        from runtimes.servers.runtime import CallsRuntime

        profile, gateway = self._config.sandbox.profile(), self._the_gateway()
        return CallsRuntime(
            RestRuntime(self._sandbox, gateway, self._catalog, profile, self._reversions),
            self._files,
            Servers(self._paths.servers),
            self._sandbox,
            gateway,
            self._catalog,
            self._config.sandbox.profile,
            self._reversions,
        )

    def _sql(self) -> Runtime:
        from runtimes.sql.pair_policy import Pairs
        from runtimes.sql.pairs.failed import FailedPairs
        from runtimes.sql.runtime import SqlRuntime

        paths, config = self._paths, self._config
        return SqlRuntime(
            self._lend,
            config.databases.limits(),
            protected=(paths.config_dir, paths.run_dir, paths.state_dir),
            pairs=Pairs(self._sandbox, FailedPairs(paths.state_dir / "failed-pairs"), config.sandbox.runtime),
        )

    def _mongo(self) -> Runtime:
        from runtimes.mongo.runtime import MongoRuntime

        return MongoRuntime(self._lend, self._config.databases.limits())

    def _code(self) -> Runtime:
        from runtimes.code.runtime import CodeRuntime

        return CodeRuntime(
            self._sandbox,
            self._the_gateway(),
            self._catalog,
            self._config.sandbox.profile(),
            self._reversions,
            self._config.sandbox.profile,
        )
