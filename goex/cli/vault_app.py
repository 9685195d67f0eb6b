"""What the commands of `goex vault` share: their group, options, and how a vault's state is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from goex.cli.help_text import App
from goex.cli.output import Output, shown
from policies.display_text import counted

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

app = App(help="Credentials, sealed.")

AccountName = Annotated[str, typer.Option("--account", metavar="NAME", help="Which account of the service.")]
DEFAULT_ACCOUNT = "default"
PassphraseFd = Annotated[
    int, typer.Option("--passphrase-fd", metavar="N", help="Read passphrases from descriptor N, a line each.")
]

_OPEN_TO_ALL = (
    "While the keyring is unlocked, any program of your user may ask it for the vault's key. "
    "Where agents run as your user, use --passphrase."
)


def say_status(out: Output, reply: pb.VaultStatus) -> None:
    out.message(reply)
    if not out.as_json:
        out.say(
            shown(f"The vault is {reply.state}, keyed by {reply.keyed_by}, with {counted(reply.records, 'record')}.")
        )
        for damage in reply.damage:
            out.say(shown(f"Altered outside of GoEx, and unusable until it is put again or removed: {damage}"))


def chosen_key(out: Output, keyring: bool, passphrase: bool) -> Literal["keyring", "passphrase"]:
    """Who keeps a new vault's key: who was named, else the system's keyring where it can. Raises Unavailable where it
    was named and can't."""
    if keyring:
        require_keyring(out)
        return "keyring"
    if passphrase:
        return "passphrase"
    from goex.cli.doctor import keyring as look

    found = look()
    if not found.ok:
        out.progress(f"No keyring that can be used, so a passphrase keys the vault. {found.says}")
        return "passphrase"
    _say_kept(out, found.says)
    return "keyring"


def require_keyring(out: Output) -> None:
    """Raise Unavailable where the system's keyring can't keep a key, before a passphrase is typed for it; else say who
    may have the key then."""
    from goex.cli.doctor import keyring
    from policies.errors import Unavailable

    found = keyring()
    if not found.ok:
        raise Unavailable(found.says, next_step=found.mend)
    _say_kept(out, found.says)


def _say_kept(out: Output, keyring: str) -> None:
    """In which keyring the key is kept, and who may have it there."""
    out.progress(shown(f"The system's keyring keeps the vault's key: {keyring}."))
    out.progress(_OPEN_TO_ALL)
