"""`goex passkey`: which passkeys show your presence. They are added on the page (`goex web`)."""

from __future__ import annotations

from typing import Annotated

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, local, shown

app = App(help="Passkeys that show your presence.")


@app.command("list")
def list_passkeys(as_json: Json = False) -> None:
    """The registered passkeys, and whether they are needed."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import passkeys_pb2 as pb

    reply = call(out, "Passkeys/List", pb.ListPasskeysRequest(), pb.ListPasskeysReply)
    if as_json:
        return
    if not reply.passkeys:
        out.say("No passkey is registered.")
        out.progress("Add one on the page: goex web")
    else:
        out.table(
            ("id", "name", "for", "added", "last used"),
            [
                (one.id, shown(one.name), shown(one.rp_id), local(one.created), local(one.used) or "never")
                for one in reply.passkeys
            ],
        )
    if reply.presence == "passkey":
        out.progress("The approval passphrase alone shows no presence.")
    if reply.reset_at:
        out.progress(f"All of them can be removed from {local(reply.reset_at)} on. Cancel: goex passkey reset --cancel")


@app.command("remove")
def remove(
    id: Annotated[str, typer.Argument(metavar="ID", help="As goex passkey list shows it.")], as_json: Json = False
) -> None:
    """Remove a passkey. A passkey confirms it, on the page."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.prompt import with_presence
    from goex.rpc import passkeys_pb2 as pb

    with connect(out) as client:
        reply = with_presence(
            lambda _: client.call("Passkeys/Remove", pb.RemovePasskeyRequest(id=id), pb.RemovePasskeyReply)
        )
    out.message(reply)
    if not as_json:
        out.say("It was removed.")


@app.command("reset")
def reset(
    cancel: Annotated[bool, typer.Option("--cancel", help="Keep them: somebody else asked for it.")] = False,
    as_json: Json = False,
) -> None:
    """Remove all passkeys, when you lost them: asked for with the approval passphrase, and again a day later."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.rpc import passkeys_pb2 as pb
    from policies.errors import InvalidInput

    with connect(out) as client:
        if not client.call("Passkeys/List", pb.ListPasskeysRequest(), pb.ListPasskeysReply).passkeys:
            raise InvalidInput("No passkey is registered.", next_step="Add one on the page: goex web")
        request = pb.ResetPasskeysRequest(cancel=cancel)
        reply = call_with_presence(client, "Passkeys/Reset", request, pb.ResetPasskeysReply)
    out.message(reply)
    if as_json:
        return
    if cancel:
        out.say("No passkey will be removed.")
    elif reply.done:
        out.say("All passkeys were removed.")
        out.progress("Add new ones on the page: goex web")
    else:
        out.say(f"They can be removed from {local(reply.reset_at)} on.")
        out.progress("Run the same again then. Any use of a passkey until then keeps them.")
