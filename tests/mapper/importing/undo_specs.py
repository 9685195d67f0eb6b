"""A labelled set: small documents written as services write theirs, and for each change what takes it back.

The label is the operation that takes a call back, "" where none may be derived: because there is none, or because the
document doesn't say enough to be sure. `LABELS` was written before the derivation was measured on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.mapper.importing.undo_looks import LOOKS
from tests.mapper.importing.undo_ops import ID, TEXT, WHOLE, YES, Ops, op, thing, written
from tests.mapper.importing.undo_styles import STYLES

NOTES: tuple[dict[str, Any], Ops] = (
    {
        "Note": thing(id=ID, title=TEXT, text=TEXT, archived=YES, updated_at=TEXT, labels={"type": "array"}),
        "NoteInput": thing(["title"], title=TEXT, text=TEXT, labels={"type": "array"}),
    },
    {
        "GET /notes": op(),
        "POST /notes": op("DELETE /notes/{id}", body="NoteInput", answer="Note", codes=[201]),
        "GET /notes/{id}": op(answer="Note", codes=[200, 404]),
        "PATCH /notes/{id}": op("PATCH /notes/{id}", body="NoteInputPatch", answer="Note", codes=[200]),
        "PUT /notes/{id}": op("PUT /notes/{id}", body="NoteInput", answer="Note", codes=[200]),
        "DELETE /notes/{id}": op("POST /notes", codes=[204]),
        "POST /notes/{id}/archive": op("POST /notes/{id}/unarchive", answer="Note"),
        "POST /notes/{id}/unarchive": op("POST /notes/{id}/archive", answer="Note"),
        "POST /notes/{id}/share": op(body="NoteInput"),
        "POST /notes/{id}/pin": op(),  # nothing says whether it is pinned
        "POST /notes/{id}/unpin": op(),
    },
)
NOTES[0]["NoteInputPatch"] = thing(title=TEXT, text=TEXT, labels={"type": "array"})

SHOP: tuple[dict[str, Any], Ops] = (
    {
        "Product": thing(id={"type": "integer"}, name=TEXT, price=WHOLE, active=YES),
        "Order": thing(id=ID, total=WHOLE, status=TEXT),
        "OrderInput": thing(["items"], items={"type": "array"}),
        "Hook": thing(id=ID, url=TEXT, secret=TEXT),
        "HookInput": thing(url=TEXT, secret=TEXT),
    },
    {
        # The caller may give the id, so that what is there may be another's: an upsert.
        "POST /product": op("DELETE /product/{productId}", body="Product", answer="Product", name="addProduct"),
        "GET /product/{productId}": op(answer="Product", codes=[200, 404]),
        "DELETE /product/{productId}": op(),
        "POST /product/{productId}/activate": op("POST /product/{productId}/deactivate"),
        "POST /product/{productId}/deactivate": op("POST /product/{productId}/activate"),
        "POST /orders": op(body="OrderInput", answer="Order", codes=[201]),  # nothing deletes an order
        "GET /orders/{id}": op(answer="Order"),
        "POST /orders/{id}/cancel": op(),
        "POST /orders/{id}/refund": op(),
        "POST /hooks": op("DELETE /hooks/{id}", body="HookInput", answer="Hook", codes=[201]),
        "GET /hooks/{id}": op(answer="Hook"),
        "PATCH /hooks/{id}": op("PATCH /hooks/{id}", body="HookInput", answer="Hook"),
        "PUT /hooks/{id}": op(body="HookInput", answer="Hook"),  # its secret isn't read
        "DELETE /hooks/{id}": op(),
    },
)

FORGE: tuple[dict[str, Any], Ops] = (
    {
        "Repo": thing(name=TEXT, description=TEXT, archived=YES),
        "Issue": thing(number=WHOLE, title=TEXT, state=TEXT, locked=YES),
        "IssueInput": thing(["title"], title=TEXT, state=TEXT),
        "Comment": thing(id=TEXT, body=TEXT, updated_at=TEXT),
        "CommentInput": thing(["body"], body=TEXT),
        "Job": thing(id=TEXT, state=TEXT),
    },
    {
        "GET /user/starred/{owner}/{repo}": op(codes=[204, 404]),
        "PUT /user/starred/{owner}/{repo}": op("DELETE /user/starred/{owner}/{repo}", codes=[204]),
        "DELETE /user/starred/{owner}/{repo}": op("PUT /user/starred/{owner}/{repo}", codes=[204]),
        # No answer of the read says that it isn't there.
        "GET /user/blocks/{name}": op(codes=[200]),
        "PUT /user/blocks/{name}": op(codes=[204]),
        "DELETE /user/blocks/{name}": op(codes=[204]),
        "POST /repos/{owner}/{repo}/issues": op(body="IssueInput", answer="Issue", codes=[201]),
        "GET /repos/{owner}/{repo}/issues/{number}": op(answer="Issue"),
        "PATCH /repos/{owner}/{repo}/issues/{number}": op(
            "PATCH /repos/{owner}/{repo}/issues/{number}", body="IssueEdit", answer="Issue"
        ),
        "PUT /repos/{owner}/{repo}/issues/{number}/lock": op(),
        "POST /repos/{owner}/{repo}/issues/{number}/comments": op(body="CommentInput", answer="Comment", codes=[201]),
        "POST /repos/{owner}/{repo}/comments": op(
            "DELETE /repos/{owner}/{repo}/comments/{id}", body="CommentInput", answer="Comment", codes=[201]
        ),
        "GET /repos/{owner}/{repo}/comments/{id}": op(answer="Comment"),
        "DELETE /repos/{owner}/{repo}/comments/{id}": op("POST /repos/{owner}/{repo}/comments"),
        # Others put issues into a repository: they would go with it.
        "POST /repos/{owner}": op(body="Repo", answer="Repo", codes=[201]),
        "GET /repos/{owner}/{repo}": op(answer="Repo"),
        "DELETE /repos/{owner}/{repo}": op(),
        # What it starts goes on by itself.
        "PATCH /repos/{owner}/{repo}": op(body="Repo", answer="Job", codes=[202]),
    },
)
FORGE[0]["IssueEdit"] = thing(title=TEXT, state=TEXT)

CHAT: tuple[dict[str, Any], Ops] = (
    {"Message": thing(channel=TEXT, ts=TEXT, text=TEXT), "Post": thing(["channel"], channel=TEXT, text=TEXT)},
    {
        "POST /chat.postMessage": op(body="Post", answer="Message"),
        "POST /chat.delete": op(body="Post"),
        "POST /channels.archive": op(body="Post"),
        "POST /channels.unarchive": op(body="Post"),
        # The conversation may have been open before.
        "POST /conversations": op(body="Post", answer="Message", codes=[200, 201]),
        "GET /conversations/{ts}": op(answer="Message"),
        "DELETE /conversations/{ts}": op(),
    },
)

OFFICE: tuple[dict[str, Any], Ops] = (
    {
        "Member": thing(user_id=TEXT, role=TEXT),
        "Task": thing(task_id=ID, name=TEXT, done=YES, etag=TEXT, completed=YES),
        "TaskInput": thing(name=TEXT, done=YES),
        "Report": thing(id=ID, name=TEXT),
    },
    {
        "POST /teams/{team}/members": op(
            "DELETE /teams/{team}/members/{user_id}", body="Member", answer="Member", codes=[201]
        ),
        "GET /teams/{team}/members/{user_id}": op(answer="Member", codes=[200, 404]),
        "DELETE /teams/{team}/members/{user_id}": op(),  # who joined a team by themselves isn't asked
        "POST /tasks": op("DELETE /tasks/{task_id}", body="TaskInput", answer="Task", codes=[201]),
        "GET /tasks/{task_id}": op(answer="Task"),
        "PATCH /tasks/{task_id}": op("PATCH /tasks/{task_id}", body="TaskInput", answer="Task"),
        "DELETE /tasks/{task_id}": op("POST /tasks"),
        "POST /tasks/{task_id}:complete": op("POST /tasks/{task_id}:uncomplete"),
        "POST /tasks/{task_id}:uncomplete": op("POST /tasks/{task_id}:complete"),
        "POST /reports": op(body="Report", answer="Report", codes=[201], scopes=["reports.write"]),
        # Needs a permission that making one has no use for.
        "GET /reports/{id}": op(answer="Report", scopes=["reports.read"]),
        "DELETE /reports/{id}": op(scopes=["reports.admin"]),
        # A read that shows a part alone.
        "POST /files": op(body="TaskInput", answer="Task", codes=[201]),
        "GET /files/{task_id}": op(answer="Task", optional=["view"]),
        # Each field that is written must have been shown, or nothing is sent.
        "PATCH /files/{task_id}": op("PATCH /files/{task_id}", body="TaskInput", answer="Task"),
        "DELETE /files/{task_id}": op(),
        # Deleting asks for more than is known.
        "POST /plans": op(body="TaskInput", answer="Task", codes=[201]),
        "GET /plans/{task_id}": op(answer="Task"),
        "DELETE /plans/{task_id}": op(query=["confirm"]),
        # What is answered isn't what is read.
        "POST /drafts": op(body="TaskInput", answer="Report", codes=[201]),
        "GET /drafts/{task_id}": op(answer="Task"),
        "DELETE /drafts/{task_id}": op(),
    },
)

BOARDS: tuple[dict[str, Any], Ops] = (
    {
        "Board": thing(id=ID, name=TEXT),
        "BoardInput": thing(name=TEXT),
        "Cards": {"type": "array", "items": {"$ref": "#/components/schemas/Card"}},
        "Lanes": thing(lanes={"type": "array"}, next=TEXT),
        "Card": thing(id=ID, name=TEXT, done=YES),
        "CardInput": thing(["name"], name=TEXT, done=YES),
    },
    {
        # It is deleted again only while nothing was put into it, which both lists say.
        "POST /boards": op("DELETE /boards/{id}", body="BoardInput", answer="Board", codes=[201]),
        "GET /boards/{id}": op(answer="Board"),
        "DELETE /boards/{id}": op(),
        "GET /boards/{boardId}/cards": op(answer="Cards"),
        "POST /boards/{boardId}/cards": op(
            "DELETE /boards/{boardId}/cards/{id}", body="CardInput", answer="Card", codes=[201]
        ),
        "GET /boards/{boardId}/cards/{id}": op(answer="Card"),
        "DELETE /boards/{boardId}/cards/{id}": op("POST /boards/{boardId}/cards"),
        "GET /boards/{boardId}/lanes": op(answer="Lanes"),
        "POST /boards/{boardId}/lanes": op(body="BoardInput", codes=[204]),
        "DELETE /boards/{boardId}/lanes/{lane}": op(),
        # Of what is in a folder nothing is listed.
        "POST /folders": op(body="BoardInput", answer="Board", codes=[201]),
        "GET /folders/{id}": op(answer="Board"),
        "DELETE /folders/{id}": op(),
        "POST /folders/{id}/files": op(body="BoardInput", codes=[204]),
        "DELETE /folders/{id}/files/{file}": op(),
    },
)

ENVELOPES: tuple[dict[str, Any], Ops] = (
    {
        "Server": thing(id=ID, name=TEXT, note=TEXT),
        "ServerInput": thing(["name"], name=TEXT, note=TEXT),
        "ServerFields": thing(name=TEXT, note=TEXT),
        "OneServer": thing(server={"$ref": "#/components/schemas/Server"}, meta={"type": "object"}),
        "Goal": thing(gid=ID, title=TEXT),
        "GoalFields": thing(["title"], title=TEXT),
        "OneGoal": thing(data={"$ref": "#/components/schemas/Goal"}),
        "GoalInput": thing(["data"], data={"$ref": "#/components/schemas/GoalFields"}),
        "Owner": thing(id=ID, name=TEXT),
        "Pet": thing(owner={"$ref": "#/components/schemas/Owner"}),
        "PetInput": thing(["name"], name=TEXT),
    },
    {
        # An envelope that is named like the thing, and one that says data; a slash at the end.
        "POST /servers": op("DELETE /servers/{id}", body="ServerInput", answer="OneServer", codes=[201]),
        "GET /servers/{id}": op(answer="OneServer"),
        "PUT /servers/{id}": op("PUT /servers/{id}", body="ServerInput", answer="OneServer"),
        "DELETE /servers/{id}": op("POST /servers"),
        "POST /goals/": op("DELETE /goals/{gid}/", body="GoalInput", answer="OneGoal", codes=[201]),
        "GET /goals/{gid}/": op(answer="OneGoal"),
        "PUT /goals/{gid}/": op("PUT /goals/{gid}/", body="GoalInput", answer="OneGoal"),
        "PATCH /goals/{gid}/": op(body="GoalInput", answer="OneGoal"),
        # What is answered is in an envelope, what is written isn't.
        "PATCH /servers/{id}": op("PATCH /servers/{id}", body="ServerFields", answer="OneServer"),
        "DELETE /goals/{gid}/": op("POST /goals/"),
        # What stands alone in this answer is another thing: its id would delete somebody else's.
        "POST /pets": op(body="PetInput", answer="Pet", codes=[201]),
        "GET /pets/{id}": op(answer="Pet"),
        "DELETE /pets/{id}": op(),
        # With and without a slash there are two: neither is sure.
        "POST /notes": op(body="ServerInput", answer="Server", codes=[201]),
        "GET /notes/{id}": op(answer="Server"),
        "DELETE /notes/{id}": op(),
        "DELETE /notes/{id}/": op(),
    },
)

SETTINGS: tuple[dict[str, Any], Ops] = (
    {
        "Settings": thing(theme=TEXT, mail=YES, version=WHOLE),
        "SettingsInput": thing(["theme"], theme=TEXT, mail=YES),
        "Alarm": thing(sound=TEXT, on=YES),
        "Command": thing(["action"], action=TEXT),
        "Profile": thing(["name"], name=TEXT),
        "Milestone": thing(number={"type": "number"}, title=TEXT),
        "MilestoneInput": thing(["title"], title=TEXT),
        "Key": thing(["name"], name=TEXT, text=TEXT),
    },
    {
        # Settings are there with what they are of.
        "GET /users/{user}/settings": op(answer="Settings", codes=[200, 404]),
        "PUT /users/{user}/settings": op("PUT /users/{user}/settings", body="SettingsInput", answer="Settings"),
        "GET /users/{user}/alarm": op(answer="Alarm"),
        "PUT /users/{user}/alarm": op("PUT /users/{user}/alarm", body="Alarm", codes=[204]),
        # May be made by it, and goes.
        "GET /users/{user}/mark": op(answer="Alarm"),
        "PUT /users/{user}/mark": op(body="Alarm", answer="Alarm"),
        "DELETE /users/{user}/mark": op(),
        "GET /users/{user}/sign": op(answer="Alarm"),
        # It may be made by it: only where it was there is it sent as what can be taken back.
        "PUT /users/{user}/sign": op("PUT /users/{user}/sign", body="Alarm", answer="Alarm", codes=[200, 201]),
        # A command isn't what is read.
        "GET /users/{user}/player": op(answer="Alarm"),
        "PUT /users/{user}/player": op(body="Command", answer="Alarm"),
        # Nothing says where profiles are made: this one may make them, that one says that it can't.
        "GET /profiles/{user}": op(answer="Profile"),
        "PUT /profiles/{user}": op("PUT /profiles/{user}", body="Profile", answer="Profile"),
        "GET /people/{user}": op(answer="Profile"),
        "PUT /people/{user}": op("PUT /people/{user}", body="Profile", answer="Profile", codes=[200, 404]),
        # A thing's own number in another name; a name that every call gives itself.
        "POST /milestones": op(
            "DELETE /milestones/{milestone_number}", body="MilestoneInput", answer="Milestone", codes=[201]
        ),
        "GET /milestones/{milestone_number}": op(answer="Milestone"),
        "DELETE /milestones/{milestone_number}": op("POST /milestones"),
        "POST /keys": op(body="Key", answer="Key", codes=[201]),
        "GET /keys/{key_name}": op(answer="Key"),
        "DELETE /keys/{key_name}": op(),
    },
)

MAIL: tuple[dict[str, Any], Ops] = (
    {
        # As OData's documents write it: a type that every body must name, and reads that show what they are asked for.
        "Letter": {
            **thing(
                ["@odata.type"],
                **{"@odata.type": {"type": "string", "default": "#mail.letter"}},
                id={"type": "string", "description": "The id of it. Read-only."},
                subject=TEXT,
                note={"type": "string", "nullable": True},
                seen=YES,
                files={"type": "array", "x-ms-navigationProperty": True},
            )
        },
    },
    {
        "POST /letters": op("DELETE /letters/{letter-id}", body="Letter", answer="Letter", codes=[201]),
        "GET /letters/{letter-id}": op(answer="Letter", select=["id", "subject", "note", "seen", "files"]),
        "PATCH /letters/{letter-id}": op("PATCH /letters/{letter-id}", body="Letter", answer="Letter"),
        "PUT /letters/{letter-id}": op(body="Letter", answer="Letter"),  # what isn't shown would be lost
        "DELETE /letters/{letter-id}": op(),  # its files would be
    },
)

ELSEWHERE: tuple[dict[str, Any], Ops] = (
    {
        "Column": thing(id=ID, name=TEXT),
        "ColumnInput": thing(["name"], name=TEXT),
        "Label": thing(name=TEXT, color=TEXT),
        "LabelInput": thing(["name"], name=TEXT, color=TEXT),
        "Remark": thing(id=ID, text=TEXT),
    },
    {
        # The thing stands in a place of its own, not below the collection.
        "POST /projects/{project}/columns": op(
            "DELETE /projects/columns/{id}", body="ColumnInput", answer="Column", codes=[201]
        ),
        "GET /projects/columns/{id}": op(answer="Column", codes=[200, 404]),
        "DELETE /projects/columns/{id}": op(),
        # There are two places for it, so that neither is sure; and one whose deletion needs what nobody said.
        "POST /projects/{project}/remarks": op(body="ColumnInput", answer="Remark", codes=[201]),
        "GET /projects/remarks/{id}": op(answer="Remark"),
        "DELETE /projects/remarks/{id}": op(),
        "GET /remarks/{id}": op(answer="Remark"),
        "DELETE /remarks/{id}": op(),
        "GET /teams/{team}/columns/{id}": op(answer="Column"),
        "DELETE /teams/{team}/columns/{id}": op(),
        # Every call names it: it must be free before.
        "POST /projects/{project}/labels": op(
            "DELETE /projects/{project}/labels/{name}", body="LabelInput", answer="Label", codes=[200, 201]
        ),
        "GET /projects/{project}/labels/{name}": op(answer="Label", codes=[200, 404]),
        "DELETE /projects/{project}/labels/{name}": op(),  # a POST that says 200, too, may change one
        # What all of them need is the same for all of them; what only one needs isn't known.
        "POST /places": op("DELETE /places/{id}", body="ColumnInput", answer="Column", codes=[201], query=["site"]),
        "GET /places/{id}": op(answer="Column", query=["site"]),
        "PATCH /places/{id}": op("PATCH /places/{id}", body="ColumnInput", answer="Column", query=["site"]),
        "DELETE /places/{id}": op("POST /places", query=["site"]),
        "GET /spots/{id}": op(answer="Column"),
        "PATCH /spots/{id}": op(body="ColumnInput", answer="Column", query=["name"]),
    },
)

UPSERTS: tuple[dict[str, Any], Ops] = (
    {
        "Flag": thing(key=ID, on=YES, text=TEXT, seen={"type": "integer", "readOnly": True}),
        "FlagInput": thing(["on"], on=YES, text=TEXT),
        "Done": thing(success=YES, message=TEXT),
        "Job": thing(job_id=TEXT),
    },
    {
        # A PUT makes what it doesn't find: the read before says which it was.
        "GET /flags/{key}": op(answer="Flag", codes=[200, 404]),
        "PUT /flags/{key}": op("PUT /flags/{key}", body="FlagInput", answer="Flag", codes=[200, 201]),
        "DELETE /flags/{key}": op("PUT /flags/{key}", codes=[204]),
        # Without an answer, where nothing else writes to it; and where something does.
        "GET /knobs/{key}": op(answer="Flag", codes=[200, 404]),
        "PUT /knobs/{key}": op("PUT /knobs/{key}", body="FlagInput", codes=[201, 204]),
        "DELETE /knobs/{key}": op("PUT /knobs/{key}", codes=[204]),
        "GET /dials/{key}": op(answer="Flag", codes=[200, 404]),
        "PUT /dials/{key}": op("PUT /dials/{key}", body="FlagInput", codes=[201, 204]),
        "POST /dials/{key}/turn": op(),
        "DELETE /dials/{key}": op("PUT /dials/{key}", codes=[204]),
        # The document doesn't say what is read where there is nothing: the read before does, or nothing is sent.
        "GET /hooks/{key}": op(answer="Flag", codes=[200]),
        "PUT /hooks/{key}": op("PUT /hooks/{key}", body="FlagInput", answer="Flag", codes=[200, 201]),
        "DELETE /hooks/{key}": op("PUT /hooks/{key}", codes=[204]),
        # Others may put something into it: only where it was there before is it taken back.
        "GET /bins/{key}": op(answer="Flag", codes=[200, 404]),
        "PUT /bins/{key}": op("PUT /bins/{key}", body="FlagInput", answer="Flag", codes=[200, 201]),
        "DELETE /bins/{key}": op(codes=[204]),
        "POST /bins/{key}/items": op(body="FlagInput", answer="Flag", codes=[202]),
        "GET /bins/{key}/items/{id}": op(answer="Flag"),
        # An answer that says only that it was done; and one of something that goes on.
        "GET /alarm": op(answer="Flag"),
        "PUT /alarm": op("PUT /alarm", body="FlagInput", answer="Done"),
        "GET /siren": op(answer="Flag"),
        "PUT /siren": op(body="FlagInput", answer="Job"),
    },
)

SPECS: Mapping[str, tuple[dict[str, Any], Ops]] = {
    "notes": NOTES, "shop": SHOP, "forge": FORGE, "chat": CHAT, "office": OFFICE, "boards": BOARDS,
    "envelopes": ENVELOPES, "settings": SETTINGS, "mail": MAIL, "elsewhere": ELSEWHERE,
    "upserts": UPSERTS, **STYLES, **LOOKS,
}  # fmt: skip


def document(name: str) -> dict[str, Any]:
    """The OpenAPI document of one of `SPECS`."""
    return written(name, *SPECS[name])
