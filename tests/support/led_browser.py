"""The person's browser, as `BROWSER` names it: a script that goes where it is led, and writes down where that was."""

from __future__ import annotations

import sys
from pathlib import Path


def led_browser(folder: Path) -> tuple[Path, Path]:
    """Return the script, and the file that is there once it was run: what it was given, then what it was answered
    there, there again, and elsewhere on that port."""
    script, opened = folder / "browser", folder / "opened"
    script.write_text(
        f"#!{sys.executable} -I\n"
        "import http.client, os, sys, urllib.parse\n"
        "there, said = urllib.parse.urlsplit(sys.argv[1]), [sys.argv[1]]\n"
        "for path in (there.path, there.path, '/'):\n"
        "    link = http.client.HTTPConnection(there.netloc, timeout=300)\n"
        "    link.request('GET', path)\n"
        "    answer = link.getresponse()\n"
        "    said.append(f'{answer.status} {answer.headers[\"Location\"]}')\n"
        f"with open({str(opened) + '.new'!r}, 'w') as file:\n"
        "    print(*said, sep='\\n', file=file)\n"
        f"os.replace(file.name, {str(opened)!r})\n"
    )
    script.chmod(0o755)
    return script, opened
