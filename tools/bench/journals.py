"""A journal as a year of use leaves it: actions that were asked for, allowed, run and answered, ten rows each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from goex.journal.actions import Actions
from goex.journal.chain import Journal, Transaction
from goex.journal.states import Event
from policies.actions import ApiCalls, Call, Need, Outcome, Plan, UndoClass
from policies.services import Risk
from tests.support.daemon import VAULT_PASSPHRASE, Daemon
from vault.keys import PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

ROWS = 100_000
ROWS_OF_AN_ACTION = 10
_AT_ONCE = 500  # actions in a transaction: they are written as fast as may be
_SERVICES = (("slack", "chat:write", "chat.postMessage"), ("gmail", "gmail.send", "messages.send"))
_BY = "user 1000, process 4242 (goex), on the user socket"


def fill(journal: Journal, rows: int = ROWS) -> None:
    """Append so many rows."""
    kept = Actions(journal)
    for start in range(0, rows // ROWS_OF_AN_ACTION, _AT_ONCE):
        with journal.transaction() as transaction:
            for number in range(start, min(start + _AT_ONCE, rows // ROWS_OF_AN_ACTION)):
                _action(kept, transaction, number)


@contextmanager
def behind(daemon: Daemon) -> Iterator[Journal]:
    """A daemon's journal with its own keys, while it is stopped; afterwards it runs again, unlocked."""
    daemon.stop()
    vault = Vault.open(daemon.state_dir / "vault.db")
    vault.unlock(PassphraseProtector(Secret(VAULT_PASSPHRASE.encode())))
    journal = Journal(daemon.state_dir / "state.db", daemon.state_dir / "journal.head")
    journal.unlock(vault.derive("journal"))
    vault.seal()
    yield journal
    journal.close()
    daemon.start()
    daemon.unlock()


def _action(kept: Actions, transaction: Transaction, number: int) -> None:
    id, agent = f"a-{number:012x}", f"agent-{number % 7}"
    plan = _plan(number)
    row = kept.create(
        transaction,
        id=id,
        agent=agent,
        session=f"term-{number % 40}",
        intent="",
        action=plan.action,
        source=f"user 1000, process {number} (python3), on the agent socket",
        detached=False,
    )
    row = kept.step(transaction, row, Event.ASSESS, plan=plan)
    row = kept.step(transaction, row, Event.ASK, facts={"question": f"q-{number:012x}"})
    need = plan.needs[0]
    grant = {"id": f"g-{number:012x}", "service": need.service, "account": "work", "scope": need.scope, "width": "once"}
    facts: dict[str, object] = {"grants": [grant], "by": _BY, "ledger": "0" * 64}
    transaction.append("grant", action_id=id, agent=agent, facts=facts)
    row = kept.step(transaction, row, Event.ALLOW, facts={"grants": [grant["id"]], "ledger": "0" * 64})
    row = kept.step(transaction, row, Event.PREPARE)
    row = kept.step(transaction, row, Event.RUN)
    url = f"https://{need.service}.com/api/{need.methods[0]}"
    facts = {"request": "call-0", "call": f"{need.service}.{need.methods[0]}", "method": "POST", "url": url}
    transaction.append("request", action_id=id, agent=agent, facts=facts)
    facts = {"request": "call-0", "status": 200, "well": True, "bytes": 321, "sha256": "1" * 64}
    transaction.append("answer", action_id=id, agent=agent, facts=facts)
    outcome = Outcome(ok=True, summary="1 call went well.", results=({"status": 200, "body": {"ok": True}},))
    kept.step(transaction, row, Event.FINISH, outcome=outcome)


def _plan(number: int) -> Plan:
    service, scope, method = _SERVICES[number % len(_SERVICES)]
    arguments = {"channel": f"#room-{number % 50}", "text": f"The figures of day {number} are in, have a look at them."}
    call = Call(service=service, method=method, arguments=arguments, account="work")
    need = Need(
        service=service, account="work", scope=scope, risk=Risk.WRITE, methods=(method,), arguments=(arguments,)
    )
    return Plan(
        action=ApiCalls(calls=(call,)),
        needs=(need,),
        undo_class=UndoClass.COMPENSATING,
        undo_text="deletes the message; others may have read it",
        resolved={"requests": [{"id": "call-0", "method": "POST", "path": f"/api/{method}", "body": arguments}]},
        bounds={"calls": 1},
        catalog_hash="c" * 64,
        image_id="i" * 64,
        limits={"seconds": 60, "memory": 256},
        lines=(f"{service}.{method}", *(f"{name} = {value}" for name, value in arguments.items())),
    )
