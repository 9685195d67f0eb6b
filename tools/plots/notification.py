"""docs/notification.png: the real notifications of a real daemon, on xfce4-notifyd, with a frame around them.

python -m tools.plots.notification
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.desktop import Desktop, Notifying
from tests.support.journey import Journey

FILE = Path(__file__).parents[2] / "docs" / "notification.png"
BACKGROUND = "#24566b"


def call(service: str, method: str, **arguments: Any) -> pb.ExecuteRequest:
    made = pb.Call(service=service, method=method, arguments_json=json.dumps(arguments))
    return pb.ExecuteRequest(calls=pb.Calls(calls=[made]))


def main() -> None:
    with Daemon() as daemon, Desktop("xfce", size=(1280, 900)) as desktop, tempfile.TemporaryDirectory() as folder:
        for service in ("google_calendar", "slack"):
            put = pb.VaultPutRequest(service=service, account="work", secret=b"none", passphrase=APPROVAL_PASSPHRASE)
            daemon.person("VaultPut", put)
        token = daemon.add_agent("assistant")
        desktop.start_server()
        with Notifying(daemon, desktop) as notifying:
            read = Journey(
                daemon, call("google_calendar", "events.list", calendarId="primary", q="dentist"), token=token
            )
            notifying.until("shown", approvals=[read.asked().id])
            text = "The release is out."
            write = Journey(daemon, call("slack", "chat.postMessage", channel="C0RELEASES", text=text), token=token)
            notifying.until("shown", approvals=[write.asked().id])
            time.sleep(1.5)
            whole = Path(folder) / "whole.png"
            desktop.picture(whole)
            shown = desktop.windows()
        left = min(window.x for window in shown)
        top = min(window.y for window in shown)
        right = max(window.x + window.width for window in shown)
        bottom = max(window.y + window.height for window in shown)
        area = f"{right - left}x{bottom - top}+{left}+{top}"
        subprocess.run(
            ["convert", str(whole), "-crop", area, "+repage", "-fill", BACKGROUND, "-opaque", "black",
             "-bordercolor", BACKGROUND, "-border", "24", "-strip", "+dither", "-colors", "256", f"png8:{FILE}"],
            check=True,
        )  # fmt: skip
    sys.stdout.write(f"{FILE} ({FILE.stat().st_size} bytes)\n")


if __name__ == "__main__":
    main()
