"""The tests. gRPC's fork handlers are off: between fork and exec they may end what becomes a server."""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
