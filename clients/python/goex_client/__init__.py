"""The client of GoEx for agents: it proposes, and a person decides."""

from goex_client.aio import AsyncClient
from goex_client.client import Client
from goex_client.errors import GoexError, NotDone, NotRunning, Refused, TimedOut
from goex_client.requests import Allowance, Call
from goex_client.results import Result

__all__ = [
    "Allowance",
    "AsyncClient",
    "Call",
    "Client",
    "GoexError",
    "NotDone",
    "NotRunning",
    "Refused",
    "Result",
    "TimedOut",
]
__version__ = "0.1.0"
