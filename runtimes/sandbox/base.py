"""The Debian base below our images: the registry's slim image, or the same made here with debootstrap.

Rules: what lies in the engine already is used as it is, so that a second build needs no network; a registry that
doesn't answer soon is passed over; debootstrap runs in a mount namespace of its own, so that nothing it mounts can
outlive it; the base holds no setuid file, no device node, no package lists, no machine id.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from policies.display_text import escape
from policies.errors import Unavailable
from runtimes.sandbox.docker_sdk import APIClient, docker
from runtimes.sandbox.engine import LIBRARY_ERRORS, connect, translate

SUITE = "bookworm"
# myhostname: the engine puts an empty /etc/hosts over ours, and localhost must still have an address.
PACKAGES = ("ca-certificates", "libnss-myhostname", "python3", "tini")
OWN = f"goex/debian-base:{SUITE}"
SLIM = ("debian", f"{SUITE}-slim")
LABEL = "org.goex.base"

_REGISTRY_SECONDS = 15  # without a sign of life from the registry
_LEFT_OUT = (
    "dev/",
    "proc/",
    "sys/",
    "run/",
    "tmp/",
    "debootstrap/",
    "usr/share/doc/",
    "usr/share/doc-base/",
    "usr/share/info/",
    "usr/share/lintian/",
    "usr/share/locale/",
    "usr/share/man/",
    "var/cache/apt/",
    "var/cache/debconf/",
    "var/lib/apt/lists/",
    "var/log/",
)
_EMPTIED = ("etc/machine-id", "var/lib/dbus/machine-id", "etc/hostname", "etc/resolv.conf")
# Changes with everything that decides what the base holds, so that an outdated one is made again.
RECIPE = hashlib.sha256(repr((SUITE, PACKAGES, _LEFT_OUT, _EMPTIED, 1)).encode()).hexdigest()[:16]

Progress = Callable[[str], None]


def ensure(client: APIClient, progress: Progress) -> tuple[str, bool]:
    """The image to build on, and whether it holds PACKAGES already (else the build fetches them).

    Raises Unavailable when neither the registry nor debootstrap can give one.
    """
    if _present(client, OWN) == RECIPE:
        return OWN, True
    slim = ":".join(SLIM)
    if _present(client, slim) is not None or _pulled(progress):
        return slim, False
    _debootstrapped(client, progress)
    return OWN, True


def _present(client: APIClient, image: str) -> str | None:
    """The recipe that the image is labelled with ("" without a label), None when there is no such image."""
    try:
        config = client.inspect_image(image).get("Config") or {}  # type: ignore[no-untyped-call] # the stubs lack it
    except docker.errors.ImageNotFound:
        return None
    return str((config.get("Labels") or {}).get(LABEL, ""))


def _pulled(progress: Progress) -> bool:
    """Fetch the slim image. False when the registry can't be reached, which is no error: there is another way."""
    progress(f"Asking the registry for {':'.join(SLIM)}.")
    client = connect(_REGISTRY_SECONDS)
    try:
        for event in client.pull(SLIM[0], tag=SLIM[1], stream=True, decode=True):
            if "error" in event:
                progress(f"The registry didn't give it: {escape(str(event['error']))[:200]}")
                return False
        return True
    except LIBRARY_ERRORS as error:
        progress(f"The registry didn't give it: {translate(error, 'fetch the image').message}")
        return False
    finally:
        client.close()


def _debootstrapped(client: APIClient, progress: Progress) -> None:
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise Unavailable(
            "The image registry can't be reached, and making the base image here takes root and debootstrap.",
            next_step=(
                f"Connect to a registry that has {':'.join(SLIM)}, or run "
                "`sudo apt-get install debootstrap && sudo goex images build`."
            ),
        )
    # /var/tmp, since /tmp is often mounted nodev, where debootstrap refuses to work.
    with tempfile.TemporaryDirectory(prefix="goex-base-", dir="/var/tmp") as scratch:
        root = Path(scratch, "root")
        _run_debootstrap(root, progress)
        progress("Packing the base image.")
        packed = Path(scratch, "base.tar")
        pack(root, packed)
        changes = [f"LABEL {LABEL}={RECIPE}"]
        client.import_image_from_file(str(packed), repository=OWN.split(":")[0], tag=SUITE, changes=changes)


def _run_debootstrap(root: Path, progress: Progress) -> None:
    progress(f"Making a Debian {SUITE} base with debootstrap (about a minute).")
    command = ["unshare", "--mount", "--propagation", "private", "debootstrap", "--variant=minbase"]
    command += [f"--include={','.join(PACKAGES)}", SUITE, str(root)]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    proxies = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy")}
    last = ""
    with subprocess.Popen(
        command, env=environment | proxies, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                last = escape(raw.decode(errors="replace").strip())[:200]
                progress(last)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise Unavailable(
            f"debootstrap failed: {last}", next_step="Check that this machine reaches a Debian mirror, and try again."
        )


def pack(root: Path, target: Path) -> None:
    """Write `root` as a tar archive without what a container doesn't need or must not have."""

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = member.name
        if any(name.startswith(prefix) for prefix in _LEFT_OUT) or member.ischr() or member.isblk():
            return None
        if member.isfile():
            member.mode &= ~(stat.S_ISUID | stat.S_ISGID)
        if name in _EMPTIED and member.isfile():
            member.size = 0
        return member

    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for entry in sorted(root.iterdir()):
            archive.add(entry, arcname=entry.name, filter=keep)
