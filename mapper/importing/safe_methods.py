"""Whether a GET, HEAD or QUERY of an imported document only reads, or a POST whose name asks: what its own words, path
and parameters say. Pure.

Rules: HTTP calls these methods safe, and documents of real services have `GET /apps.uninstall`, so that the method
alone proves nothing. A verb of change where a verb stands (a name's first or last word, a path's last segment, a
sentence's first word, a clause that goes on with "and", "then" or "will", a flag among the parameters) makes it a
change, unless what stands there is plainly read as a noun. Of the other methods, one whose path ends with a verb
of deletion, or whose words begin with one, deletes. A mistake here asks once too often, which is the cheaper one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from mapper.importing.risks import risk_of, words
from policies.services import Risk

SAFE = frozenset({"GET", "HEAD", "QUERY"})


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DELETES = _set(
    """
    delete remove destroy purge wipe erase clear empty uninstall terminate unregister deregister discard expunge
    truncate drop deprovision undeploy forget abandon unpublish flush kill
    """
)
_ADMINS = _set("revoke grant impersonate promote demote")
_WRITES = _set(
    """
    create add insert update modify edit rename move send resend publish subscribe unsubscribe start restart reboot
    reset stop pause resume shutdown suspend mute unmute enable disable activate deactivate reactivate lock unlock
    archive unarchive approve reject accept decline confirm register enroll invite kick ban unban unblock trigger
    submit upload sync synchronize resync rotate regenerate renew restore rollback undelete untrash mark unmark
    unlike upvote downvote unfollow assign unassign attach detach associate disassociate allocate deallocate reserve
    unreserve purchase redeem refund withdraw deposit install reinstall upgrade provision migrate reopen complete
    finish commit abort cancel retry requeue snooze acknowledge ack dismiss reindex rebuild recheck invalidate
    logout signout deploy redeploy reschedule pin unpin star unstar hide unhide replace overwrite save store write
    enqueue dequeue apply toggle wake reload reply share unshare append link unlink disassociate dissociate push
    initiate recover clean zap disconnect halt duplicate ignore authenticate
    """
)
# What is as often a noun: counts where a sentence begins with it, not in a name or a path.
_SENTENCES = _set(
    """
    set post put open close block release import merge run execute follow vote like book buy pay charge transfer
    launch issue make change log sign join leave switch turn force refresh schedule clone fork copy trash ship burn
    mint claim exchange expire scale resize queue power cycle
    """
)
_CHANGES = _DELETES | _ADMINS | _WRITES
_ASKS = _set(
    """
    get list search query lookup fetch count find read retrieve browse describe inspect preview validate verify
    check estimate summarize autocomplete diff compare show view return see display lookup download export is has
    are test calculate compute translate convert determine discover resolve explore head tell enumerate load obtain
    provide analyze
    """
)
# Of these a name or a path makes nouns as well ("/posts/{id}/archive", "update history").
_NOUNS = _SENTENCES | _set(
    """
    start stop update upload mark share commit save store reply invite refund deposit reserve purchase archive
    upgrade install insert reset register deploy pause restore sync trigger star pin reload empty discard drop abort
    renew confirm submit complete finish grant delegate write modify retry replace link push ignore
    """
)
# A path's last fixed segment, where it is a word. One that is nothing but a verb isn't outweighed by what the words
# say: `/x/{id}/reboot`, "Returns the status".
_LAST = re.compile(r"/([A-Za-z]+)(?:/[^/{]*\{[^/]*)*/?$")
_WHOLE = _CHANGES - _NOUNS
_OPENERS = re.compile(
    r"(?:deprecated\W+|beta\W+|admin\W+|(?:this|the|an?)\s+(?:\w+\s+)?(?:method|endpoint|end\s?point|api|api\s+call|operation|call|"
    r"request|resource|function|route|action|command|service)\s+|it\s+|api\s+|endpoint\s+|method\s+|please\s+|simply\s+|"
    r"used?\s+(?:this\s+)?(?:\w+\s+){0,2}(?=to\s|for\s)|is\s+used\s+|can\s+be\s+used\s+|will\s+|to\s+|for\s+|"
    r"(?:allows?|lets?|enables?)\s+(?:[\w'-]+\s+){0,6}?(?=to\s)|"
    r"(?:allows?|lets?|enables?)\s+(?:you|users?|one)\s+|attempts?\s+|tries\s+|immediately\s+|permanently\s+|"
    r"automatically\s+|manually\s+|temporarily\s+|one-click\s+|bulk\s+|batch\s+|power\s+(?=cycle))",
    re.IGNORECASE,
)
_DETERMINERS = (
    r"(?:the|a|an|all|any|it|its|them|this|that|these|those|your|my|his|their|one|every|each|new|existing|specified|"
    r"given|multiple|selected|current|up|out|off|on|in|user|users|own|certain|specific)\b"
)
_FIRST = re.compile(rf"\W*([A-Za-z]+(?:-[a-z]+)?)\b(\s+{_DETERMINERS})?", re.IGNORECASE)
_CLAUSE = re.compile(
    rf"(?:,|;|\band|\bthen|\balso|\bwill)\s+(?:also\s+|then\s+|automatically\s+|optionally\s+|permanently\s+|will\s+)*"
    rf"([a-z]+(?:-[a-z]+)?)(\s+{_DETERMINERS})?",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\W*(?:to|if|when|for|you|in order)\b", re.IGNORECASE)  # what follows is advice
_OTHERS = re.compile(r"\b(?:who|which|whom|that|whether|can|may|could)\b", re.IGNORECASE)
_REQUEST = re.compile(r"\s+(?:a|an|this|the|your|any)\s+(?:\S+\s+)?(?:request|call|api)s?\b", re.IGNORECASE)
_MARKS = re.compile(r"\bmark(?:s|ing)?\b[^.]{0,60}\bas\s+(?:read|seen|viewed|delivered|done|complete)", re.IGNORECASE)
# "Completes the prefix with suggestions", "executes a read-only query": the sentence itself says that it reads.
_READS = re.compile(
    r"\W*(?:completes?\b[^.]{0,60}\bwith\s[^.]{0,30}\bsuggestions\b|(?:executes?|runs?)\s+an?\s+(?:\w+\s+)?(?:read-only|select)\b)",
    re.IGNORECASE,
)
_POSED = re.compile(
    r"\W*(?:posts?\s+an?\s+(?:search|query)|creates?\s+an?\s+search\s+(?:query|of|for))\b", re.IGNORECASE
)
_WARNING = re.compile(r"\backnowledg\w+\s+the\s+risk\b", re.IGNORECASE)  # that is accepted, and no message
_FLAG = re.compile(
    r"(?:\bwill\s+(?:also\s+)?|\btrue\W+(?:will\s+|to\s+|then\s+)*|^\W*(?:whether\s+(?:or\s+not\s+)?to\s+|set\s+(?:this\s+)?to\s+)?)"
    r"([a-z]+(?:-[a-z]+)?)\b",
    re.IGNORECASE,
)
# What a flag may do besides, where a read has it; "enable", "add" and the like choose what is shown.
_FLAGS = _set(
    """
    delete remove destroy purge wipe erase clear revoke reset mark mute unmute recheck archive unarchive ack
    acknowledge dismiss subscribe unsubscribe cancel restart regenerate rotate recreate reindex create update save
    terminate
    """
)
# What else would be a verb is the first word of a noun: "close price", `openInterest`, "queue of a site".
_COMPOUND = re.compile(
    r"\W*(?:\w+ of|open (?:orders|positions)|change (?:logs?|history)|"
    r"(?:block|book|charge|close|copy|cycle|exchange|launch|merge|open|power|queue|release|run|scale|schedule|"
    r"sign(?: in)?|trash|transfer|vote) (?:counts?|depth|fees?|history|info|information|interest|logs?|notes|prices?|"
    r"rates?|results?|size|stat(?:e|us)|times?|usage))\b",
    re.IGNORECASE,
)
# Before a noun without an article these are verbs all the same.
_PLAIN = _set("set mute unmute delete revoke uninstall cancel disable enable unsubscribe recheck")
_BEGINS = _set("start stop reset sync reload update upload restore")  # of a name in camel case, nouns elsewhere
_ASKED = _set("run execute submit accept clean confirm issue")  # a query, or what it is about, where a POST's name asks
# Before a verb that a path ends with they make it a setting or an event, where the words say that it is read.
_QUALIFIERS = _set("auto automatic on pre post before after first last soft")
# What is verified once, and what a link has that does it.
_PROVED = _set(
    """
    email mail phone mobile sms otp totp mfa domain domains factor factors challenge challenges hook hooks webhook
    webhooks
    """
)
_HOOKS = _set("hook hooks webhook webhooks")  # the signature of what one sends is compared, and nothing else
# "Generate an OIDC token": whoever has it is let in.
_ISSUED = re.compile(
    r"\W*(?:generat|issu|mint|exchang)(?:es?|s)?\s+(?=\S)"
    r"(?!(?:rates?|history|that|which|about|with|of|on|between|in|for)\b)"  # "exchange rate", "issues about tokens"
    r"(?!(?:(?:an?|the)\s+)?(?:\w+\s+)?(?:reports?|summar(?:y|ies)|statistics)\s+(?:of|about|on|for)\b)"
    r"[^.]{0,60}\b(?:tokens?|credentials?|api[ -]?keys?|secrets?)\b(?!\s+(?:reports?|statistics|usage)\b)",
    re.IGNORECASE,
)
# What is so called takes a mark off, though its words speak of what it removes: "Removes the message from the trash".
_TAKEN_OFF = _set(
    """
    unarchive unbookmark unfavorite unfavourite unflag unhide unignore unlabel unlike unmark unmute unpin unsave unstar
    untag untrash
    """
)
_CALLED_OFF = _set("cancel abort undo")  # a deletion, where a path ends with both: `/cancelDelete`
# "Removes any previous labels and sets the new labels": writes, as any PUT does.
_REPLACES = re.compile(
    r"\W*removes?\s+(?=\S)[^.]{0,20}\b(?:previous|existing)\b[^.]{0,60}\band\s+"
    r"(?:sets?\s+(?:the\s+)?new|replaces?\s+(?:it|them))\b",
    re.IGNORECASE,
)
_CALLBACK = "callback"  # a path that ends so completes a login, or stores what it is given
_CODES = _set("token code otp")
_ACTIONS = frozenset({"action", "actions", "cmd", "command", "op", "operation", "method", "do", "act", "verb"})
_MOST = 40  # parameters that are looked at


def risk(
    http: str,
    name: str,
    *,
    path: str = "",
    scopes: Iterable[str] = (),
    said: Iterable[str] = (),
    tags: Iterable[str] = (),
    parameters: Iterable[tuple[str, Mapping[str, Any]]] = (),
    named: bool = True,
) -> Risk:
    """The risk of an operation called `name`, with what its document says of it: `said` are its summary and
    description, `parameters` the names and schemas of its query. Not `named`: the name is a part of its path."""
    known, said = risk_of(http, name, scopes=scopes, path=path), tuple(said)
    if http.upper() in SAFE:
        return max(known, change_in(name, path, said, tags, parameters, named))
    known = max(known, _said_to_delete(name, path, said))
    if _proves(name, path):
        known = max(known, Risk.WRITE)
    if known is not Risk.READ or risk_of(http, name, path=path) is not Risk.READ:
        return known  # the provider lets a read-only permission make it
    return max((_risk(verb) for text in said for verb in _opening(text)), default=known)


def _said_to_delete(name: str, path: str, said: Iterable[str]) -> Risk:
    """The risk of a POST, PUT or PATCH by a verb of deletion, or one of access, that its path ends with or its words
    begin with; `Risk.READ` where there is none."""
    found = [verb for verb in _in_path(path, True) if verb in _DELETES]
    if (last := _LAST.search(path)) and words(last[1])[0] in _CALLED_OFF:
        found.clear()
    called = words(name.rpartition(".")[2])
    takes_off = not _TAKEN_OFF.isdisjoint((*called, *(f"un{one}" for un, one in pairwise(called) if un == "un")))
    for text in said:
        verb, followed = _first_of(text)
        if verb in ("remove", "clear") and (takes_off or _REPLACES.match(text)):
            continue
        if verb in _DELETES | {"revoke", "grant"} and (verb not in _NOUNS or followed) and not _COMPOUND.match(text):
            found.append(verb)
    return max((_risk(verb) for verb in found), default=Risk.READ)


def _proves(name: str, path: str) -> bool:
    """Whether something is verified that counts as verified from then on: an address, a phone, a domain."""
    said = words(re.split(r"[./]", name)[-1])
    proved = _PROVED - _HOOKS if "signature" in said else _PROVED
    return "verify" in said[:3] and not proved.isdisjoint((*words(name), *words(path)))


def _opening(text: str) -> list[str]:
    """The verb of change that the words about a POST begin with, whose name alone asks: `listUserFollow`."""
    verb, followed = _first_of(text)
    followed = followed or verb not in _NOUNS or verb == "trigger"
    told = verb in (_CHANGES | _SENTENCES) - _ASKED and followed and not _READS.match(text)
    told = told and not _POSED.match(text)
    return [verb] if told else ["mark"] * bool(_MARKS.search(text[:400]))


def change_in(
    name: str,
    path: str,
    said: Iterable[str] = (),
    tags: Iterable[str] = (),
    parameters: Iterable[tuple[str, Mapping[str, Any]]] = (),
    named: bool = True,
) -> Risk:
    """The risk that the words of a GET speak of; `Risk.READ` where nothing says that it changes something."""
    texts = [text for text in said if text]
    reads = any(_first_of(text)[0] in _ASKS for text in texts) or (not texts and _asks(name))
    found = [verb for text in texts for verb in _in_text(text, reads)]
    found += [verb for verb in (*_in_name(name), *_in_path(path, reads)) if not (reads and verb in _WRITES)]
    if (last := _LAST.search(path)) and ((verb := last[1].lower()) in _WHOLE or (verb == _CALLBACK and not reads)):
        found.append(verb)
    if any(_ISSUED.match(text) for text in texts):
        found.append("grant")
    if not reads and not _begins_asking(name):
        # A path's segment is rather a thing's name, unless the document calls the operation so.
        found += _before_noun(name, path, texts) if named or name in map(str.strip, texts) else []
        told = [text for text in texts if not _COMPOUND.match(text)]
        found += [verb for text in told if (verb := _first_of(text)[0]) in _NOUNS and _is_last(verb, path)]
    found += [verb for tag in tags if not reads and (verb := _base(tag)) in _CHANGES - _NOUNS]
    item = path.rstrip("/").endswith("}")
    for wire, schema in list(parameters)[:_MOST]:
        found += _in_parameter(wire, schema, item)
        if not _CODES.isdisjoint(words(wire)[-1:]) and _proves(name, path):
            found.append("verify")
    return max((_risk(verb) for verb in found), default=Risk.READ)


def _risk(verb: str) -> Risk:
    if verb in _ADMINS:
        return Risk.ADMIN
    return Risk.DELETE if verb in _DELETES else Risk.WRITE


def _base(word: str) -> str:
    """A verb as it is in a list here, from its third person or a spelling with a dash."""
    word = word.lower().replace("-", "")
    for end, instead in (("ies", "y"), ("es", ""), ("s", "")):
        if word.endswith(end) and (short := word[: -len(end)] + instead) in _CHANGES | _SENTENCES | _ASKS:
            return short
    return word


def _asks(name: str) -> bool:
    """Whether the last part of a name is a verb that reads: `muteConfigs.list`."""
    return re.split(r"[^A-Za-z0-9]+", name)[-1].lower() in _ASKS


def _begins_asking(name: str) -> bool:
    """Whether the first word of a name's last part reads: `getSchedule` is about a schedule."""
    return not _ASKS.isdisjoint(words(re.split(r"[^A-Za-z0-9]+", name)[-1])[:1])


def _in_name(name: str) -> list[str]:
    """The verb of a name: its first word, or the last part of one that is put together."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    if len(parts) > 1 and parts[0].lower() in ("get", "head", "query"):
        parts = parts[1:]
    first, last = (words(parts[0]), words(parts[-1])) if parts else ([], [])
    if not first or first[0] in _ASKS:
        return []
    found = [said[0] for said in (first, last) if said and said[0] in _CHANGES - _NOUNS]
    if last and last[0] not in _ASKS and last[-1] in _CHANGES - _NOUNS:
        found.append(last[-1])
    return found


def _before_noun(name: str, path: str, texts: list[str]) -> list[str]:
    """The verb of a name's last part that is in camel case and asks nothing: there a noun follows it (`payInvoice`).
    The texts must have it as well, or the path's end; with neither, several things aren't changed (`runResults`). Not
    of what is called like the things at its path: `deployKeys` of `/deploy_keys/{id}`, `postComments` of a post."""
    name = re.sub(r"Using(?:GET|HEAD)(?:_[0-9]+)?$", "", name)  # a generator of documents adds it
    verb, *more = words(re.split(r"[^A-Za-z0-9]+", name)[-1]) or [""]
    camel = re.search(r"(?:^|[^A-Za-z0-9])[a-z]+[A-Z][A-Za-z0-9]*$", name)
    named = verb in _NOUNS - {"log"} and bool(more) and not _ASKS & {verb, *more}  # logs are read by their names
    if not camel or not named or _COMPOUND.match(" ".join([verb, *more])):
        return []
    things = re.search(r"([A-Za-z_-]+s)/\{[^{}]*\}/?$", path)
    if things is not None and words(things[1]) == [verb, *more]:
        return []
    if re.search(rf"/{verb}s(?:/\{{[^{{}}]*\}})?/{'[_-]?'.join(more)}/?$", path, re.IGNORECASE):
        return []
    said = [_base(word) for text in texts for word in words(text[:400])[:8]]
    several = re.search(r"[^s]s$", more[-1]) is not None
    return [verb] if _is_last(verb, path) or (verb in said if texts else not several) else []


def _is_last(verb: str, path: str) -> bool:
    """Whether a path ends with a verb that one thing is before: `/doors/{id}/open`."""
    return re.search(rf"\}}/{verb}/?$", path, re.IGNORECASE) is not None


def _in_path(path: str, reads: bool) -> list[str]:
    """The verb of a path's last segment that is fixed (one of deletion, also as its last word), or of one that is
    nothing but a verb."""
    fixed = [segment for segment in path.split("/") if segment and "{" not in segment]
    found = []
    for segment in fixed:
        last = segment is fixed[-1]
        for part in re.split(r"[.:]", segment):
            verb, *more = words(part) or [""]
            told = verb in _CHANGES - _NOUNS and (last or not more)
            if told or (verb in _BEGINS and last and more and not reads):
                found.append(verb)
            about = reads and not _QUALIFIERS.isdisjoint((verb, *more[:-1]))
            if last and more and more[-1] in (_DELETES | _ADMINS) - _NOUNS and not about:
                found.append(more[-1])
    if fixed and not reads and fixed[-1].lower() in _CHANGES:
        found.append(fixed[-1].lower())
    return found


def _first_of(text: str) -> tuple[str, bool]:
    """The verb that a sentence begins with, and whether an article or the like follows."""
    while (opener := _OPENERS.match(text)) and opener.end():
        text = text[opener.end() :]
    match = _FIRST.match(text)
    return (_base(match[1]), bool(match[2])) if match else ("", False)


def _in_text(text: str, reads: bool) -> list[str]:
    """The verbs of change that a description's first sentences begin or go on with."""
    found = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n+|<[^>]{1,40}>", text[:400])[:2]:
        verb, followed = _first_of(sentence)
        counted = _DELETES | _ADMINS if reads or _READS.match(sentence) else _CHANGES | _SENTENCES
        if verb in counted and (verb not in _NOUNS or (followed and not _COMPOUND.match(sentence))):
            found.append(verb)
        if (verb in _ASKS or verb in _CHANGES) and not _CONDITION.match(sentence):
            found += _in_clauses(sentence)
    if _MARKS.search(text[:400]):
        found.append("mark")
    return found


def _in_clauses(sentence: str) -> list[str]:
    """The verbs of change that a sentence goes on with; what others may do is no such clause."""
    found = []
    for clause in _CLAUSE.finditer(sentence):
        base, plain = _base(clause[1]), clause[1].lower() in _PLAIN
        if base not in _CHANGES | _SENTENCES or not (clause[2] or plain) or _REQUEST.match(sentence, clause.end(1)):
            continue
        if not _OTHERS.search(sentence[: clause.start()]):
            found.append(base)
    return found


def is_action(name: str) -> bool:
    """Whether a parameter by that name says what is done."""
    verb, *more = words(name) or [""]
    return verb in _ACTIONS and not more


def _in_parameter(wire: str, schema: Mapping[str, Any], item: bool) -> list[str]:
    """What a flag or a choice among the parameters says that the operation does besides; for one `item`, a choice of
    its states filters nothing, and so sets one."""
    verb = (words(wire) or [""])[0]
    described = str(schema.get("description", ""))[:200]
    choices = [str(one) for one in schema.get("enum", ()) or ()]
    if is_action(wire):
        items = schema.get("items")
        choices += [str(one) for one in (items.get("enum", ()) if isinstance(items, Mapping) else ())]
        return [base for one in choices for word in words(one)[:1] if (base := _base(word)) in _CHANGES]
    types = schema.get("type")
    flag = "boolean" in (types if isinstance(types, list) else [types]) or "set to 1" in described.lower()
    flag = flag or not {"true", "1", "yes"}.isdisjoint(one.lower() for one in choices)
    found = [verb] if flag and verb in _FLAGS and not _WARNING.search(described) else []
    if item and any(f"un{one}" in choices for one in choices):
        found.append("set")
    if flag or choices or "true" in described.lower():
        found += [base for word in _FLAG.findall(described) if (base := _base(word)) in _FLAGS - {"remove", "clear"}]
    return found
