"""More of the labelled set: what nothing but a look shows. Things that no answer names and a list shows before and
after, reads of which no document says what they show, ids by other names than their path's, and paths whose last word
says what is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.mapper.importing.undo_ops import ID, TEXT, WHOLE, YES, Ops, op, thing


def _all(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}


# No answer names what was made.
UNNAMED: tuple[dict[str, Any], Ops] = (
    {
        "Rule": thing(id=ID, text=TEXT, on=YES),
        "RuleInput": thing(["text"], text=TEXT, on=YES),
        "Rules": thing(rules=_all("Rule")),
        "Done": thing(ok=YES),
        "Begun": thing(operation=TEXT),
        "Full": thing(id=ID, text=TEXT, on=YES, owner=TEXT),
        "Tagged": thing(id=ID, tags={"type": "array", "items": TEXT}),
        "TaggedInput": thing(tags={"type": "array", "items": TEXT}),
        "TaggedOnes": _all("Tagged"),
        "Paid": thing(id=ID, text=TEXT),
        "PaidInput": thing(text=TEXT, payment_method=TEXT),
        "PaidOnes": _all("Paid"),
    },
    {
        "POST /hosts/{host}/rules": op("DELETE /hosts/{host}/rules/{rule_id}", body="RuleInput", codes=[201]),
        "GET /hosts/{host}/rules": op(answer="Rules"),
        "DELETE /hosts/{host}/rules/{rule_id}": op(codes=[204]),
        # Answered, and not with what it is called.
        "POST /masks": op("DELETE /masks/{mask_id}", body="RuleInput", answer="Done", codes=[201]),
        "GET /masks": op(answer="Rules"),
        "DELETE /masks/{mask_id}": op(codes=[204]),
        # A list that is shown page by page may not show it.
        "POST /pages": op(body="RuleInput", codes=[201]),
        "GET /pages": op(answer="Rules", optional=["page"]),
        "DELETE /pages/{page_id}": op(codes=[204]),
        # Its read shows more than the list, which somebody else may change.
        "POST /parts": op(body="RuleInput", codes=[201]),
        "GET /parts": op(answer="Rules"),
        "GET /parts/{part_id}": op(answer="Full"),
        "DELETE /parts/{part_id}": op(codes=[204]),
        # Nothing that is sent is a text, or stands in the list as it was sent.
        "POST /marks": op(body="TaggedInput", codes=[201]),
        "GET /marks": op(answer="TaggedOnes"),
        "DELETE /marks/{mark_id}": op(codes=[204]),
        # It may change what is there; it is paid for.
        "POST /states": op(body="RuleInput", codes=[200], said="Create or update a state"),
        "GET /states": op(answer="Rules"),
        "DELETE /states/{state_id}": op(codes=[204]),
        "POST /seats": op(body="PaidInput", codes=[201]),
        "GET /seats": op(answer="PaidOnes"),
        "DELETE /seats/{seat_id}": op(codes=[204]),
        # It is still being made when it is answered, and may not be listed yet.
        "POST /copies": op(body="RuleInput", answer="Begun", codes=[201]),
        "GET /copies": op(answer="Rules"),
        "DELETE /copies/{copy_id}": op(codes=[204]),
        # What was put into it since isn't seen.
        "POST /shelves": op(body="RuleInput", codes=[201]),
        "GET /shelves": op(answer="Rules"),
        "DELETE /shelves/{shelf_id}": op(codes=[204]),
        "POST /shelves/{shelf_id}/books": op(body="RuleInput", codes=[201]),
        "DELETE /shelves/{shelf_id}/books/{book_id}": op(codes=[204]),
    },
)

# Reads of which the document doesn't say what they show.
UNTOLD: tuple[dict[str, Any], Ops] = (
    {
        "Look": thing(["color"], color=TEXT, size=WHOLE),
        "LookPart": thing(color=TEXT, size=WHOLE),
        "Safe": thing(["password"], password=TEXT, color=TEXT),
        "Names": thing(names={"type": "array", "items": TEXT}),
        "Text": TEXT,
    },
    {
        "GET /looks/{id}": op(),
        "PUT /looks/{id}": op("PUT /looks/{id}", body="Look", codes=[200, 404]),
        "PATCH /looks/{id}": op("PATCH /looks/{id}", body="LookPart", codes=[204]),
        # What isn't shown again, what may be added to, what is a text.
        "GET /safes/{id}": op(),
        "PUT /safes/{id}": op(body="Safe", codes=[200, 404]),
        "GET /names": op(),
        "PUT /names": op(body="Names", codes=[200]),
        "GET /texts/{id}": op(answer="Text"),
        "PUT /texts/{id}": op(body="Look", codes=[200, 404]),
        # Only taken; and one that asks for more than is known.
        "GET /slow/{id}": op(),
        "PUT /slow/{id}": op(body="Look", codes=[202]),
        "GET /asked/{id}": op(query=["as"]),
        "PUT /asked/{id}": op(body="Look", codes=[200, 404]),
    },
)

# Ids by other names than those of their paths.
IDS: tuple[dict[str, Any], Ops] = (
    {
        "Group": thing(id=ID, title=TEXT),
        "GroupInput": thing(["title"], title=TEXT),
        "User": thing(userId=ID, title=TEXT),
        "Mixed": thing(id=ID, title=TEXT, name=TEXT),
    },
    {
        "POST /groups": op("DELETE /groups/{groupKey}", body="GroupInput", answer="Group", codes=[201]),
        "GET /groups/{groupKey}": op(answer="Group"),
        "DELETE /groups/{groupKey}": op("POST /groups", codes=[204]),
        "POST /users": op("DELETE /users/{id}", body="GroupInput", answer="User", codes=[201]),
        "GET /users/{id}": op(answer="User"),
        "DELETE /users/{id}": op("POST /users", codes=[204]),
        # It has an id, and is called by something else.
        "POST /hosts": op(body="GroupInput", answer="Group", codes=[201]),
        "GET /hosts/{hostname}": op(answer="Group"),
        "DELETE /hosts/{hostname}": op(codes=[204]),
        "POST /files": op(body="GroupInput", answer="User", codes=[201]),  # a user's id is no file's
        "GET /files/{id}": op(answer="User"),
        "DELETE /files/{id}": op(codes=[204]),
    },
)

# What was there before is put somewhere; what a POST begins; what is asked to be done.
BESIDE: tuple[dict[str, Any], Ops] = (
    {
        "File": thing(id=ID, title=TEXT, size=WHOLE),
        "FileInput": thing(["title"], title=TEXT),
        "Joined": thing(file_id=TEXT),
        "Change": thing(comment=TEXT, instructions={"type": "array", "items": TEXT}),
        "Firm": thing(id=ID, title=TEXT, town=TEXT),
        "FirmInput": thing(title=TEXT, town=TEXT),
        "Note": thing(id=ID, note=TEXT),
        "NoteInput": thing(["note"], note=TEXT),
        "Notes": _all("Note"),
        "Order": thing(id=ID, status=TEXT, note=TEXT),
        "OrderInput": thing(status=TEXT, note=TEXT),
        "Job": thing(id=ID, title=TEXT, ready_to_execute=YES),
        "JobInput": thing(title=TEXT, ready_to_execute=YES),
        "Line": thing(title=TEXT, town=TEXT),
        "Paged": thing(data=_all("Note"), pagination={"type": "object"}),
    },
    {
        "GET /files/{id}": op(answer="File"),
        "DELETE /files/{id}": op(codes=[204]),
        "POST /drawers/{drawer}/files": op(body="Joined", answer="File", codes=[201]),
        "POST /boxes/{box}/files": op(body="FileInput", answer="File", codes=[201], said="Attaches a file to a box"),
        "POST /shelves/{shelf}/files": op("DELETE /files/{id}", body="FileInput", answer="File", codes=[201]),
        "POST /flows/{flow}/walks": op(
            body="FileInput", answer="File", codes=[201], said="Triggers a walk of the flow"
        ),
        "GET /flows/{flow}/walks/{id}": op(answer="File"),
        "DELETE /flows/{flow}/walks/{id}": op(codes=[204]),
        "GET /plans/{id}": op(answer="Change"),
        "PATCH /plans/{id}": op(body="Change", answer="Change"),
        # One that is told by its login is read there, and another one is made.
        "GET /firms": op(answer="Firm"),
        "POST /firms": op(body="FirmInput", answer="Firm", said="Creates a firm"),
        "GET /firm": op(answer="Firm"),
        "POST /firm": op("POST /firm", body="FirmInput", answer="Firm", name="updateFirm"),
        # What goes with it, or is put into it at a place of its own, doesn't come back with it.
        "POST /forms": op("DELETE /forms/{id}", body="FileInput", answer="File", codes=[201]),
        "GET /forms/{id}": op(answer="File"),
        "DELETE /forms/{id}": op(codes=[204], said="Deletes a form and all of its answers"),
        "POST /albums": op("DELETE /albums/{id}", body="FileInput", answer="File", codes=[201]),
        "GET /albums/{id}": op(answer="File"),
        "DELETE /albums/{id}": op(codes=[204]),
        "POST /albums/{id}/items": op(body="NoteInput", codes=[204]),
        "GET /albums/{id}/items": op(answer="Notes"),
        "DELETE /albums/{id}/items": op(codes=[204]),
        # A change that ends other things, and one that may pay back.
        "GET /savers/{id}": op(answer="File"),
        "PUT /savers/{id}": op(body="FileInput", codes=[200, 404], said="Updates a saver, deletes its plans"),
        "GET /orders/{id}": op(answer="Order"),
        "PUT /orders/{id}": op(body="OrderInput", codes=[200, 404]),
        "PATCH /orders/{id}": op(body="OrderInput", codes=[200]),
        "GET /jobs/{id}": op(answer="Job"),
        "PUT /jobs/{id}": op(body="JobInput", codes=[200, 404]),
        # One that says that it makes what is read at its place.
        "GET /lines/{id}": op(answer="Line"),
        "POST /lines/{id}": op(body="Line", answer="Line", said="Creates a line"),
        "GET /cords/{id}": op(answer="Line"),
        "POST /cords/{id}": op("POST /cords/{id}", body="Line", answer="Line", said="Writes a cord"),
        # What a note says doesn't name it; and a list that says that it has pages.
        "POST /notes": op(body="NoteInput", codes=[201]),
        "GET /notes": op(answer="Notes"),
        "DELETE /notes/{note}": op(codes=[204]),
        "POST /leaves": op(body="NoteInput", codes=[201]),
        "GET /leaves": op(answer="Paged"),
        "DELETE /leaves/{id}": op(codes=[204]),
    },
)

# What is done is said by the last word of a path.
SPOKEN: tuple[dict[str, Any], Ops] = (
    {"Room": thing(id=ID, title=TEXT), "RoomInput": thing(["title"], title=TEXT)},
    {
        "POST /rooms/create": op("POST /rooms/{id}/delete", body="RoomInput", answer="Room", codes=[201]),
        "GET /rooms/{id}": op(answer="Room"),
        "POST /rooms/{id}/update": op(
            "POST /rooms/{id}/update", body="Room", answer="Room", name="updateRoom", codes=[200]
        ),
        "POST /rooms/{id}/delete": op("POST /rooms/create", codes=[200]),
        # Said twice: which one does it isn't sure.
        "POST /halls/create": op(body="RoomInput", answer="Room", codes=[201]),
        "POST /halls": op("DELETE /halls/{id}", body="RoomInput", answer="Room", codes=[201]),
        "GET /halls/{id}": op(answer="Room"),
        "DELETE /halls/{id}": op("POST /halls", codes=[204]),
        # Nothing reads it; and one that says what to delete in its body.
        "POST /desks/create": op(body="RoomInput", answer="Room", codes=[201]),
        "POST /desks/{id}/delete": op(codes=[200]),
        "POST /lamps/create": op(body="RoomInput", answer="Room", codes=[201]),
        "GET /lamps/{id}": op(answer="Room"),
        "POST /lamps/{id}/delete": op(body="RoomInput", codes=[200]),
    },
)

# Answers that name a thing and say nothing more of it, ids in bodies, and states that are put there and deleted.
ANSWERS: tuple[dict[str, Any], Ops] = (
    {
        "Label": thing(id=TEXT, name=TEXT, size=WHOLE),
        "Named": thing(id=TEXT),
        "Kit": thing(id=ID, name=TEXT, size=WHOLE, updated_at=TEXT),
        "Full": thing(id=ID, name=TEXT, size=WHOLE, owner=TEXT),
        "KitInput": thing(["name"], name=TEXT, size=WHOLE),
        "Letter": thing(id=ID, to=TEXT, subject=TEXT),
        "LetterInput": thing(["to"], to=TEXT, subject=TEXT),
        "KitPart": thing(name=TEXT, size=WHOLE),
        "Visit": thing(id=ID, name=TEXT, status=TEXT),
        "VisitInput": thing(name=TEXT, status=TEXT),
        "Door": thing(id=ID, name=TEXT, locked=YES),
        "Reason": thing(reason=TEXT),
        "Work": thing(id=ID, progress=WHOLE),
        "Told": thing(status_code=WHOLE, service=TEXT, operation=TEXT, data={"$ref": "#/components/schemas/Kit"}),
        "ToldNamed": thing(status_code=WHOLE, service=TEXT, data={"$ref": "#/components/schemas/Named"}),
        "Invoice": thing(id=ID, comment=TEXT, is_voided=YES),
        "Paired": thing(status_code=WHOLE, data={"$ref": "#/components/schemas/Kit"}, owner=thing(name=TEXT)),
    },
    {
        # What is changed is named by the body; with others of it, or without a word of how it is made, it isn't sure.
        "POST /labels": op(body="KitInput", answer="Named", codes=[201]),
        "PUT /labels": op("PUT /labels", body="Label", answer="Named"),
        "PATCH /labels": op("PATCH /labels", body="Label", answer="Named"),
        "GET /labels/{id}": op(answer="Label"),
        "POST /tags": op(body="KitInput", answer="Named", codes=[201]),
        "PUT /tags": op(body="Label", answer="Named", said="Updates several tags"),
        "GET /tags/{id}": op(answer="Label"),
        "POST /calls": op(body="KitInput", answer="Named", codes=[201]),
        "PUT /calls": op(body="Label", answer="Named", said="Adds a call to the one of this id"),
        "GET /calls/{id}": op(answer="Label"),
        "PUT /wishes": op(body="Label", answer="Named"),
        "GET /wishes/{id}": op(answer="Label"),
        # Made by nothing that is known: by their words these change what is there.
        "PUT /moods": op("PUT /moods", body="Label", answer="Named", name="Moods_UpdateEntity"),
        "PATCH /moods": op("PATCH /moods", body="Label", answer="Named"),
        "GET /moods/{id}": op(answer="Label"),
        "PUT /approvals": op(body="Label", answer="Named", name="updateApproval"),
        "GET /approvals/{id}": op(answer="Label"),
        "PUT /whims": op(body="Label", answer="Named", name="createOrUpdateWhim"),
        "PATCH /whims": op(body="Label", answer="Named", said="Updates several whims"),
        "GET /whims/{id}": op(answer="Label"),
        # Answered with its id alone: what it sets may be a state that it doesn't leave, or have begun something.
        "GET /memos/{id}": op(answer="Kit"),
        "PUT /memos/{id}": op("PUT /memos/{id}", body="KitInput", answer="Named", codes=[200, 404]),
        "GET /visits/{id}": op(answer="Visit"),
        "PUT /visits/{id}": op(body="VisitInput", answer="Named", codes=[200, 404]),
        "GET /codes/{id}": op(answer="Kit"),
        "PUT /codes/{id}": op(body="KitInput", answer="Named", codes=[200, 404], said="Generates a new code"),
        "GET /orders/{id}": op(answer="Kit"),
        "PUT /orders/{id}": op(body="KitInput", answer="Named", codes=[200, 404]),
        # Made, and named: it is compared with what was sent, where its read shows nothing else.
        "POST /kits": op("DELETE /kits/{id}", body="KitInput", answer="Named", codes=[201]),
        "GET /kits/{id}": op(answer="Kit"),
        "DELETE /kits/{id}": op("POST /kits", codes=[204]),
        "POST /sets": op(body="KitInput", answer="Named", codes=[201]),
        "GET /sets/{id}": op(answer="Full"),
        "DELETE /sets/{id}": op("POST /sets", codes=[204]),
        # Answered with work that goes on, which has an id of its own.
        "POST /racks": op(body="KitInput", answer="Work", codes=[201]),
        "GET /racks/{id}": op(answer="Kit"),
        "DELETE /racks/{id}": op(codes=[204]),
        # A state that is put there and deleted; a reason that was given with it isn't given again.
        "GET /doors/{id}": op(answer="Door"),
        "PUT /doors/{id}/lock": op("DELETE /doors/{id}/lock", codes=[204]),
        "DELETE /doors/{id}/lock": op("PUT /doors/{id}/lock", codes=[204]),
        "GET /gates/{id}": op(answer="Door"),
        "PUT /gates/{id}/lock": op("DELETE /gates/{id}/lock", form="Reason", codes=[204]),
        "DELETE /gates/{id}/lock": op(codes=[204]),
        # What was sent isn't taken back with its record.
        "POST /sms": op(body="KitInput", answer="Kit", codes=[201]),
        "GET /sms/{id}": op(answer="Kit"),
        "DELETE /sms/{id}": op(codes=[204]),
        "POST /emails": op(body="LetterInput", answer="Letter", codes=[201]),
        "GET /emails/{id}": op(answer="Letter"),
        "DELETE /emails/{id}": op(codes=[204]),
        "GET /invoices/{id}": op(answer="Invoice"),
        "PATCH /invoices/{id}": op(body="Invoice", answer="Named"),
        # Around the thing stands how it went; and what isn't plainly around it.
        "GET /shelves/{id}": op(answer="Told"),
        "PATCH /shelves/{id}": op("PATCH /shelves/{id}", body="KitPart", answer="ToldNamed"),
        "GET /crates/{id}": op(answer="Paired"),
        "PATCH /crates/{id}": op(body="KitPart", answer="ToldNamed"),
        # One that says that it updates.
        "GET /people/{id}": op(answer="Kit"),
        "POST /people/{id}": op("POST /people/{id}", body="KitPart", answer="Kit", said="<p>Updates the person.</p>"),
        "GET /guests/{id}": op(answer="Visit"),
        "POST /guests/{id}": op(body="VisitInput", answer="Visit", said="Updates the guest"),
        "GET /payments/{id}": op(answer="Kit"),
        "POST /payments/{id}": op(body="KitPart", answer="Kit", said="Updates a payment"),
        "GET /trips/{id}": op(answer="Kit"),
        "POST /trips/{id}": op(body="KitPart", answer="Kit", said="Updates or creates the trip"),
    },
)

LOOKS: Mapping[str, tuple[dict[str, Any], Ops]] = {
    "unnamed": UNNAMED,
    "untold": UNTOLD,
    "ids": IDS,
    "beside": BESIDE,
    "spoken": SPOKEN,
    "answers": ANSWERS,
}
