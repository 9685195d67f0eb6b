"""Presence by passkeys: challenges that serve once, what an assertion proved, and which passkeys count.

Rules: a challenge is over one statement, for the origin of the page that runs now, of `public_url` or of the terminal,
serves one attempt and ends after five minutes; none outlives the daemon. An assertion counts for exactly the call whose
statement it signed. Its signature count must grow: one that doesn't is a copy of the authenticator, which is refused
and journaled. Which passkeys count is in the vault's record index; the journal says when each came and went, so that a
backup that is restored brings none back.

Once passkeys are required they stay so until none is left (see `vault.passkeys`). Whoever lost all asks for a reset
with the approval passphrase; it can be done a day later, is said wherever the person looks, and any assertion ends it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from goex.daemon import passkey_statements as statements
from goex.daemon import rollback, webauthn
from goex.daemon.passkey_statements import Statement
from goex.daemon.person_threads import in_thread
from goex.daemon.vault_state import VaultState
from goex.daemon.webauthn import PasskeyRefused
from goex.journal.chain import Journal, stamp
from goex.page_address import HOST, OLD_HOST, TERMINAL, page_origin, passkey_host
from policies.errors import InvalidInput
from policies.jsonvalue import parse
from policies.typed_json import from_json, to_json
from vault.passkeys import MOST, NONE, Passkey, Passkeys

log = logging.getLogger("goex.daemon")

LASTS = timedelta(minutes=5)  # a challenge
SIGN_IN_LASTS = timedelta(minutes=2)
RESET_AFTER = timedelta(hours=24)
_MOST_CHALLENGES = 500
_MOST_SIGN_INS = 500  # apart, since whoever reaches the public page may have some made
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,60}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Challenge:
    statement: Statement  # {} for the registration of a passkey
    text: str
    origin: str
    rp_id: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What an assertion proved: by which passkey, for this statement, with these facts for the journal's row."""

    passkey: Passkey
    statement: Statement
    facts: Mapping[str, str]


class PasskeyPresence:
    """The passkeys that count, and what they are asked."""

    def __init__(
        self,
        vault_state: VaultState,
        journal: Journal,
        clock: Callable[[], datetime],
        *,
        wanted: bool,
        page_key: Path,
        public_url: str = "",
    ) -> None:
        """`wanted`: config.toml asks for passkeys. `page_key`: the file that the page holds while it runs."""
        self._vault_state = vault_state
        self._journal = journal
        self._clock = clock
        self._wanted = wanted
        self._page_key = page_key
        self._public_url = public_url
        self._challenges: dict[bytes, _Challenge] = {}
        self._sign_ins: dict[bytes, _Challenge] = {}
        self._one_at_a_time = asyncio.Lock()

    # ---- what counts

    @property
    def known(self) -> Passkeys:
        """Those that are registered; none is known of while the vault is sealed."""
        return self._vault_state.vault.passkeys if self._vault_state.state == "unsealed" else NONE

    @property
    def required(self) -> bool:
        """Whether the approval passphrase alone shows no presence."""
        return self._wanted or self.known.required

    def warnings(self) -> list[str]:
        """What the person should know now."""
        found = []
        if (at := self.known.reset_at) is not None:
            found.append(
                f"Somebody asked to remove all passkeys, which can be done from {stamp(at)[:16]} UTC on. If it wasn't "
                "you: goex passkey reset --cancel"
            )
        if any(one.rp_id == OLD_HOST for one in self.known.all):
            found.append(
                f"A passkey is for {OLD_HOST}, where others may have left scripts in your browser. Remove it on the "
                "page there (goex web --localhost), then register it anew (goex web)."
            )
        return found

    # ---- asking

    def begin(self, name: str, origin: str) -> str:
        """Options for a new passkey. Raises InvalidInput."""
        _check_name(name)
        known = self._vault_state.vault.passkeys.all
        if len(known) >= MOST:
            raise InvalidInput(f"There are {MOST} passkeys already.", next_step="Remove one: goex passkey remove ID")
        origin, rp_id = self._place(origin)
        if rp_id == HOST and known and all(one.rp_id == OLD_HOST for one in known):  # which can't confirm it there
            raise InvalidInput(f"A passkey for {OLD_HOST} is registered.", next_step="Remove it: goex web --localhost")
        if rp_id == OLD_HOST and origin != self._public_url:
            raise InvalidInput(f"Passkeys are for {HOST} now.", next_step="End this page, then open it with: goex web")
        challenge = secrets.token_bytes(32)
        self._keep(challenge, {}, "", origin, rp_id)
        user = self._vault_state.vault.derive("passkey-user")[:16]
        same = [one for one in known if one.rp_id == rp_id]
        found_by_host = origin == self._public_url  # to sign in there, where no passkey is named to a stranger
        return webauthn.creation_options(
            rp_id, challenge, user=user, name=name, known=same, found_by_host=found_by_host
        )

    def challenge(self, statement: Statement, origin: str) -> tuple[str, str]:
        """Options for an assertion that approves this, and the text that is signed. Raises InvalidInput."""
        origin, rp_id = self._place(origin)
        same = [one for one in self._vault_state.vault.passkeys.all if one.rp_id == rp_id]
        if not same:
            old = rp_id == HOST and any(one.rp_id == OLD_HOST for one in self.known.all)
            step = f"For the one of {OLD_HOST}: goex web --localhost" if old else "Add one on the page: goex web"
            raise InvalidInput(f"No passkey is registered for {rp_id}.", next_step=step)
        text = statements.signed_text(statement, rp_id)
        challenge = statements.challenge_of(text)
        self._keep(challenge, statement, text, origin, rp_id)
        return webauthn.request_options(rp_id, challenge, same), text

    def sign_in(self, origin: str) -> tuple[str, str]:
        """As `challenge`, for an assertion that begins a session of the public page and nothing else. The options name
        no passkey: anybody may have them made. Raises InvalidInput."""
        origin, rp_id = self._place(origin)
        if origin != self._public_url:
            raise InvalidInput("On this machine the page is opened by its link.", next_step="goex web")
        if all(one.rp_id != rp_id for one in self.known.all):
            raise InvalidInput(f"No passkey is registered for {rp_id}.", next_step="Add one: goex web --phone")
        text = statements.signed_text(statements.signing_in(origin), rp_id)
        challenge = statements.challenge_of(text)
        self._keep(challenge, statements.signing_in(origin), text, origin, rp_id)
        return webauthn.request_options(rp_id, challenge, ()), text

    def host_asked(self, answer: str) -> str:
        """The host that a challenge was made for, which stays open. Raises PasskeyRefused."""
        if (asked := self._challenges.get(webauthn.challenge_in(answer))) is None:
            raise _not_open()
        return asked.rp_id

    # ---- answers

    async def registered(self, answer: str) -> tuple[webauthn.Registered, str]:
        """The credential that was made for one of `begin`'s challenges, and its host. Raises PasskeyRefused."""
        challenge, asked = self._take(answer)
        if asked.statement:
            raise PasskeyRefused("That challenge is for an assertion.", next_step="Begin again on the page.")
        found = webauthn.registered(answer, challenge, rp_id=asked.rp_id, origin=asked.origin)
        if any(one.credential_id == found.credential_id for one in self._vault_state.vault.passkeys.all):
            raise PasskeyRefused("That credential is registered already.", next_step="goex passkey list")
        earlier = (_facts(row).get("credential_id") for row in self._journal.rows(kind="passkey-add", limit=10_000))
        if statements.encoded(found.credential_id) in earlier:  # the log's verifier takes none twice
            raise PasskeyRefused(
                "That credential was registered before, and removed.", next_step="Have a new one made on the page."
            )
        return found, asked.rp_id

    async def shown(self, answer: str, statement: Statement | None = None, *, kind: str = "") -> Shown:
        """What an assertion proves. It must be over `statement`, or over one of that `kind`. Raises PasskeyRefused."""
        challenge, asked = self._take(answer)
        if not asked.statement or (asked.statement != statement if statement else asked.statement["kind"] != kind):
            raise PasskeyRefused(
                "This assertion approves something else than this call.", next_step="Look at it again on the page."
            )
        async with self._one_at_a_time:
            vault = self._vault_state.vault
            found = webauthn.asserted(
                answer, challenge, rp_id=asked.rp_id, origin=asked.origin, known=vault.passkeys.all
            )
            id, count = found.passkey.id, found.counter
            if found.passkey.counter and count <= found.passkey.counter:
                facts = {"passkey": id, "counter": count, "known": found.passkey.counter}
                self._journal.append("passkey-cloned", facts=facts)
                log.error("passkey %s may have been copied: its count is %d after %d", id, count, found.passkey.counter)
                raise PasskeyRefused(
                    f"The passkey {found.passkey.name!r} counts backwards ({count} after {found.passkey.counter}): "
                    "there may be a copy of it.",
                    next_step="Use another, and remove this one: goex web",
                )
            used = replace(found.passkey, counter=count, used=self._clock())
            was = vault.passkeys.reset_at

            def note(passkeys: Passkeys) -> Passkeys:
                if all(one.id != id for one in passkeys.all):
                    raise PasskeyRefused("That passkey was removed.", next_step="Use another.")
                return replace(passkeys.with_(used), reset_at=None)

            await in_thread(vault.change_passkeys, note)
            # A copy of the vault from before would bring back the earlier count, and the reset that this ended.
            kind = "passkey-use" if was is None else "passkeys-reset-cancel"
            self._journal.append(kind, facts={**rollback.noted(vault), "by": f"the passkey {id}"})
        return Shown(passkey=used, statement=asked.statement, facts=statements.facts(found, asked.text))

    # ---- changes

    async def add(
        self, name: str, made: webauthn.Registered, rp_id: str, *, by: str, proof: Mapping[str, str], first: bool
    ) -> Passkey:
        """Register a credential. `first`: it was proven by the passphrase, which suffices while there is none."""
        _check_name(name)
        passkey = Passkey(
            id=f"pk-{secrets.token_hex(6)}",
            name=name,
            credential_id=made.credential_id,
            public_key=made.public_key,
            rp_id=rp_id,
            created=self._clock(),
            counter=made.counter,
        )

        def added(known: Passkeys) -> Passkeys:
            if first and known.all:
                raise PasskeyRefused(
                    "Another passkey was registered meanwhile.", next_step="See whose it is: goex passkey list"
                )
            return replace(known.with_(passkey), required=known.required or self._wanted)

        await in_thread(self._vault_state.vault.change_passkeys, added)
        self._note_added(passkey, by=by, proof=proof)
        return passkey

    async def remove(self, id: str, *, by: str, proof: Mapping[str, str]) -> None:
        """Remove one. Raises InvalidInput."""
        vault = self._vault_state.vault
        self.check_id(id)
        await in_thread(vault.change_passkeys, lambda known: known.without((id,)))
        facts = {**rollback.noted(vault), "id": id, "by": by, **({"assertion": dict(proof)} if proof else {})}
        self._journal.append("passkey-remove", facts=facts, anchored=True)

    def check_id(self, id: str) -> None:
        if all(one.id != id for one in self._vault_state.vault.passkeys.all):
            raise InvalidInput(f"There is no passkey {id[:40]!r}.", next_step="goex passkey list")

    async def reset(self, *, by: str) -> tuple[datetime, bool]:
        """Ask for the removal of all, or do it when it was asked for a day ago. Returns when it can be done, and
        whether it was. The caller has proven the approval passphrase."""
        vault, now = self._vault_state.vault, self._clock()
        known = vault.passkeys
        if not known.all:
            raise InvalidInput("No passkey is registered.", next_step="goex passkey list")
        if known.reset_at is None:
            at = now + RESET_AFTER
            await in_thread(vault.change_passkeys, lambda known: replace(known, reset_at=at))
            self._journal.append("passkeys-reset-ask", facts={**rollback.noted(vault), "by": by, "at": stamp(at)})
            log.warning("all passkeys can be removed from %s on; asked for by %s", stamp(at), by)
            return at, False
        if now < known.reset_at:
            return known.reset_at, False
        await in_thread(vault.change_passkeys, lambda known: NONE)
        gone = [one.id for one in known.all]
        self._journal.append(
            "passkeys-reset", facts={**rollback.noted(vault), "by": by, "passkeys": gone}, anchored=True
        )
        log.warning("all passkeys were removed by %s", by)
        return known.reset_at, True

    async def cancel_reset(self, *, by: str) -> None:
        vault = self._vault_state.vault
        if vault.passkeys.reset_at is not None:
            await in_thread(vault.change_passkeys, lambda known: replace(known, reset_at=None))
            self._journal.append("passkeys-reset-cancel", facts={**rollback.noted(vault), "by": by})

    # ---- when the vault is opened

    async def opened(self, *, restored: bool) -> None:
        """The journal can be written. A vault that was just `restored` has those that the journal knows to be
        registered, and none that it knows to be removed; the journal knows each that the vault has."""
        vault = self._vault_state.vault
        rows = sorted(
            (row for kind in _KINDS for row in self._journal.rows(kind=kind, limit=10_000)), key=lambda row: row.number
        )
        if restored and rows:
            self._journal.authentic(rows[0].number)
            live, gone, required = _told(rows)
            await in_thread(
                vault.change_passkeys,
                lambda known: replace(
                    known.without(gone).with_(*(live[id] for id in live if id not in {one.id for one in known.all})),
                    required=bool(live) and (known.required or required),
                ),
            )
        noted = {_facts(row).get("id") for row in rows if row.kind == "passkey-add"}
        for passkey in vault.passkeys.all:
            if passkey.id not in noted:  # the daemon was killed before it could be, or the journal is another
                self._note_added(passkey, by="goex", proof={})
        if self._wanted and vault.passkeys.all and not vault.passkeys.required:
            await in_thread(vault.change_passkeys, lambda known: replace(known, required=bool(known.all)))
            self._journal.append("passkeys-required", facts=rollback.noted(vault), anchored=True)
        if vault.passkeys.required and not self._wanted:
            log.warning("a passkey is still needed for presence, until the last one is removed")

    # ---- inside

    def _note_added(self, passkey: Passkey, *, by: str, proof: Mapping[str, str]) -> None:
        facts: dict[str, Any] = {
            **rollback.noted(self._vault_state.vault),
            "id": passkey.id,
            "name": passkey.name,
            "rp_id": passkey.rp_id,
            "credential_id": statements.encoded(passkey.credential_id),
            "public_key": statements.encoded(webauthn.spki(passkey.public_key)),
            "passkey": to_json(passkey),
            "required": self._vault_state.vault.passkeys.required,
            "by": by,
        }
        if proof:
            facts["assertion"] = dict(proof)
        self._journal.append("passkey-add", facts=facts, anchored=True)

    def _place(self, origin: str) -> tuple[str, str]:
        """The origin of the page or the terminal ("") that asks, and its host for passkeys. Raises InvalidInput."""
        wanted = origin.removesuffix("/") or f"{TERMINAL}{HOST}"
        terminals = {TERMINAL + host for host in (HOST, *(one.rp_id for one in self.known.all))}
        if wanted not in terminals | {page_origin(self._page_key), self._public_url}:
            raise InvalidInput("No page of GoEx is there now.", next_step="Open it anew: goex web")
        return wanted, passkey_host(wanted)

    def _keep(self, challenge: bytes, statement: Statement, text: str, origin: str, rp_id: str) -> None:
        now = self._clock()
        signs_in = statement.get("kind") == statements.SIGN_IN
        kept, most = (self._sign_ins, _MOST_SIGN_INS) if signs_in else (self._challenges, _MOST_CHALLENGES)
        for old in [key for key, asked in kept.items() if asked.until <= now]:
            del kept[old]
        while len(kept) >= most:
            del kept[next(iter(kept))]
        until = now + (SIGN_IN_LASTS if signs_in else LASTS)
        kept[challenge] = _Challenge(statement=statement, text=text, origin=origin, rp_id=rp_id, until=until)

    def _take(self, answer: str) -> tuple[bytes, _Challenge]:
        """The challenge that an answer is to, which is used up by that."""
        challenge = webauthn.challenge_in(answer)
        asked = self._challenges.pop(challenge, None) or self._sign_ins.pop(challenge, None)
        if asked is None or self._clock() >= asked.until:
            raise _not_open()
        return challenge, asked


def _not_open() -> PasskeyRefused:
    return PasskeyRefused(
        "That answer is to no challenge that is open: it was used, is too old, or isn't this daemon's.",
        next_step="Try again on the page.",
    )


_KINDS = ("passkey-add", "passkey-remove", "passkeys-reset", "passkeys-required")


def _told(rows: list[Any]) -> tuple[dict[str, Passkey], set[str], bool]:
    """Which passkeys the journal leaves registered, which it knows to be gone, and whether they are required."""
    live: dict[str, Passkey] = {}
    gone: set[str] = set()
    required = False
    for row in rows:
        facts = _facts(row)
        if row.kind == "passkey-add":
            live[facts["id"]] = from_json(Passkey, facts["passkey"], "A passkey in the log")
            required |= bool(facts["required"])
        elif row.kind == "passkey-remove":
            gone.add(facts["id"])
            live.pop(facts["id"], None)
        elif row.kind == "passkeys-reset":
            gone |= {*live, *facts["passkeys"]}
            live.clear()
        else:
            required = True
        required = required and bool(live)
    return live, gone, required


def _facts(row: Any) -> Any:
    return parse(row.facts)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or not name.strip():
        raise InvalidInput("A passkey needs a name of 1 to 60 characters.", next_step='Like "laptop" or "blue key".')
