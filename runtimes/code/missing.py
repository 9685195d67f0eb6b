"""What a program lacked in its image, and the one command that adds it.

Rules: what a program prints is a stranger's word, so that only a plain name is taken out of it, at the end of what it
printed; nothing is added by that: the person reads the command, and runs it or doesn't.
"""

from __future__ import annotations

import re

_TAIL = 20_000  # characters of what was printed that are looked at
_PYTHON = re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named '([A-Za-z_][\w]{0,60})[\w.]{0,200}'", re.M)
_NODE = re.compile(
    r"Cannot find (?:package|module) '((?:@[a-z0-9][a-z0-9._-]{0,60}/)?[a-z0-9][a-z0-9._-]{0,60})[^\s']{0,99}'"
)
_COMMAND = re.compile(r"line \d{1,6}: ([a-z0-9][a-z0-9+-]{0,40}): command not found")
# Libraries whose modules have another name.
_DISTRIBUTIONS = {
    "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless", "dateutil": "python-dateutil",
    "discord": "discord.py", "docx": "python-docx", "dotenv": "python-dotenv", "fitz": "PyMuPDF",
    "git": "GitPython", "github": "PyGithub", "gitlab": "python-gitlab", "googleapiclient": "google-api-python-client",
    "jose": "python-jose", "jwt": "PyJWT", "magic": "python-magic", "nacl": "PyNaCl", "OpenSSL": "pyOpenSSL",
    "PIL": "pillow", "pptx": "python-pptx", "psycopg2": "psycopg2-binary", "serial": "pyserial",
    "skimage": "scikit-image", "sklearn": "scikit-learn", "slack": "slackclient", "socks": "PySocks",
    "telegram": "python-telegram-bot", "yaml": "PyYAML", "zmq": "pyzmq",
}  # fmt: skip


def told(stderr: bytes) -> str:
    """What to do about it, as a sentence; "" where nothing of the image was missing, or it can't be told."""
    text = stderr[-_TAIL:].decode("utf-8", "replace")
    for pattern, what, option in (
        (_PYTHON, "Python library", "library"),
        (_NODE, "package of npm", "npm"),
        (_COMMAND, "command", "package"),
    ):
        found = pattern.findall(text)
        if found:
            name = _DISTRIBUTIONS.get(found[-1], found[-1].replace("_", "-")) if option == "library" else found[-1]
            profile = f"with-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"[:40].rstrip("-")
            return (
                f"The image has no {what} {found[-1]}. If it is a published one: "
                f"goex images add {profile} --{option} {name}, "
                f"then run it with --profile {profile}."
            )
    return ""
