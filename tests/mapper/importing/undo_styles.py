"""More of the labelled set: documents in the styles of several families of APIs, with what takes each change back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.mapper.importing.undo_ops import ID, TEXT, WHOLE, YES, Ops, op, thing

# Forms, things named by what they are in the path, and a POST on a thing that changes what it is given.
FORMS: tuple[dict[str, Any], Ops] = (
    {
        "Kind": {"type": "string", "enum": ["person", "company"]},
        "Customer": thing(id=ID, name=TEXT, mail=TEXT, vip=YES, kind={"$ref": "#/components/schemas/Kind"}),
        "CustomerForm": thing(name=TEXT, mail=TEXT, vip=YES, kind={"$ref": "#/components/schemas/Kind"}),
        "CardForm": thing(name=TEXT, number=TEXT),
        "Plan": thing(id=ID, name=TEXT, price=WHOLE),
        "PlanForm": thing(["name"], name=TEXT, price=WHOLE),
    },
    {
        "POST /customers": op(
            "DELETE /customers/{customer}", form="CustomerForm", answer="Customer", name="CreateCustomer"
        ),
        "GET /customers/{customer}": op(answer="Customer"),
        "POST /customers/{customer}": op(
            "POST /customers/{customer}", form="CustomerForm", answer="Customer", name="UpdateCustomer"
        ),
        "DELETE /customers/{customer}": op("POST /customers"),
        "POST /customers/{customer}/charge": op(form="CustomerForm", answer="Customer"),
        "GET /plans/{plan}": op(answer="Plan"),
        "PUT /plans/{plan}": op("PUT /plans/{plan}", form="PlanForm", answer="Plan", codes=[200, 404]),
        # What it must be given may be all of it: the rest would be gone. And one that isn't called a change.
        "GET /offers/{offer}": op(answer="Plan"),
        "POST /offers/{offer}": op(form="PlanForm", answer="Plan", name="UpdateOffer"),
        "GET /drawers/{drawer}": op(answer="Customer"),
        "POST /drawers/{drawer}": op(form="CustomerForm", answer="Customer", name="RunDrawer"),
    },
)

# Nothing reads a thing alone, and the list that it stands in shows it as it was answered, or otherwise: then the list
# is read before and right after.
LISTED: tuple[dict[str, Any], Ops] = (
    {
        "Remark": thing(id=WHOLE, text=TEXT),
        "RemarkInput": thing(["text"], text=TEXT),
        "Remarks": {"type": "array", "items": {"$ref": "#/components/schemas/Remark"}},
        "Guest": thing(id=ID, name=TEXT),
        "GuestInput": thing(["name"], name=TEXT),
        "GuestRow": thing(id=ID, name=TEXT, since=TEXT),
        "Guests": {"type": "array", "items": {"$ref": "#/components/schemas/GuestRow"}},
    },
    {
        "GET /teams/{team}/remarks": op(answer="Remarks"),
        "POST /teams/{team}/remarks": op(
            "DELETE /teams/{team}/remarks/{remark_id}", body="RemarkInput", answer="Remark", codes=[201]
        ),
        "DELETE /teams/{team}/remarks/{remark_id}": op(),
        "GET /teams/{team}/guests": op(answer="Guests"),
        "POST /teams/{team}/guests": op(
            "DELETE /teams/{team}/guests/{guest_id}", body="GuestInput", answer="Guest", codes=[201]
        ),
        "DELETE /teams/{team}/guests/{guest_id}": op(),
    },
)

# Things that are called in their metadata; answers that show a part; ids that are numbers, and texts in the path.
CLUSTER: tuple[dict[str, Any], Ops] = (
    {
        "Meta": thing(name=TEXT, labels={"type": "object"}, resourceVersion=TEXT),
        "Map": thing(metadata={"$ref": "#/components/schemas/Meta"}, data={"type": "object"}),
        "Box": thing(id=ID, name=TEXT, size=WHOLE, note=TEXT),
        "BoxInput": thing(["name"], name=TEXT, size=WHOLE, note=TEXT),
        "BoxRow": thing(id=ID, name=TEXT, size=WHOLE),
        "Room": thing(id={"type": "integer", "readOnly": True}, name=TEXT),
        "RoomInput": thing(["name"], name=TEXT),
        "Tag": thing(["name"], name=TEXT, color=TEXT),
        "Seat": thing(["user_id"], user_id=TEXT, color=TEXT),
    },
    {
        "POST /maps": op("DELETE /maps/{name}", body="Map", answer="Map", codes=[200, 201]),
        "GET /maps/{name}": op(answer="Map", codes=[200, 404]),
        # It was another version then, so that neither is taken.
        "PUT /maps/{name}": op(body="Map", answer="Map", codes=[200, 201]),
        "DELETE /maps/{name}": op(),
        "GET /boxes/{id}": op(answer="Box"),
        "PUT /boxes/{id}": op("PUT /boxes/{id}", body="BoxInput", answer="BoxRow", codes=[200, 404]),
        "PATCH /boxes/{id}": op(body="BoxFields", answer="BoxRow"),  # it may be another thing that was changed
        "POST /rooms": op("DELETE /rooms/{room_id}", body="RoomInput", answer="Room", codes=[201]),
        "GET /rooms/{room_id}": op(answer="Room"),
        "DELETE /rooms/{room_id}": op("POST /rooms"),
        # It is made again under the name that the call gave it; another's id is no name.
        "POST /tags": op(body="Tag", codes=[201]),
        "GET /tags/{name}": op(answer="Tag"),
        "DELETE /tags/{name}": op("POST /tags"),
        "POST /seats": op(body="Seat", codes=[201]),
        "GET /seats/{user_id}": op(answer="Seat"),
        "DELETE /seats/{user_id}": op(),
    },
)
CLUSTER[0]["BoxFields"] = thing(name=TEXT, size=WHOLE, note=TEXT)

# What is more than there or not there, and what has more than its document names.
MEMBERS: tuple[dict[str, Any], Ops] = (
    {
        "Member": thing(name=TEXT, role=TEXT),
        "Bag": {**thing(id=ID, name=TEXT), "additionalProperties": True},
        "BagInput": {**thing(name=TEXT), "additionalProperties": True},
    },
    {
        "GET /groups/{group}/members/{name}": op(answer="Member", codes=[200, 404]),
        "PUT /groups/{group}/members/{name}": op(codes=[204]),
        "DELETE /groups/{group}/members/{name}": op(codes=[204]),  # its role would be lost
        "GET /bags/{id}": op(answer="Bag"),
        "PUT /bags/{id}": op(body="BagInput", answer="Bag", codes=[200, 201]),
        "PATCH /bags/{id}": op("PATCH /bags/{id}", body="BagInput", answer="Bag"),
        "DELETE /bags/{id}": op(),
        # Money isn't brought back with its record; a secret that is shown once isn't in a list, and no text is sent
        # that would tell it there.
        "POST /payments": op(body="Pay", answer="Payment", codes=[201]),
        "GET /payments/{id}": op(answer="Payment"),
        "DELETE /payments/{id}": op(),  # made again, it would be paid again
        "POST /passes": op(body="Pay", answer="Pass", codes=[201]),
        "GET /passes": op(answer="Passes"),
        "DELETE /passes/{id}": op(),
        # It is only taken, and a PATCH that makes what it doesn't find.
        "GET /pools/{id}": op(answer="Pool"),
        "PUT /pools/{id}": op(body="Pay", answer="Pool", codes=[202, 404]),
        "PATCH /pools/{id}": op("PATCH /pools/{id}", body="Pay", codes=[201, 204]),
    },
)
MEMBERS[0].update(
    Pay=thing(amount=WHOLE),
    Payment=thing(id=ID, amount=WHOLE),
    Pool=thing(id=ID, amount=WHOLE),
    Pass=thing(id=ID, amount=WHOLE, token=TEXT),
    Passes={"type": "array", "items": {"$ref": "#/components/schemas/Pass"}},
)

# What is there once: a part or the settings of another thing. And bodies with alternatives.
PARTS: tuple[dict[str, Any], Ops] = (
    {
        "Rule": thing(limit=TEXT, until=TEXT),
        "RuleInput": thing(["limit"], limit=TEXT, until=TEXT),
        "Gist": thing(id=ID, text=TEXT, note=TEXT),
        "GistInput": {**thing(text=TEXT, note=TEXT), "anyOf": [{"required": ["text"]}, {"required": ["note"]}]},
        "Perhaps": {"anyOf": [{"$ref": "#/components/schemas/GistInput"}, {"type": "null"}]},
        "Either": {"oneOf": [{"$ref": "#/components/schemas/Rule"}, {"$ref": "#/components/schemas/GistInput"}]},
    },
    {
        "GET /repos/{repo}/limit": op(answer="Rule", codes=[200, 404]),
        "PUT /repos/{repo}/limit": op("PUT /repos/{repo}/limit", body="RuleInput", answer="Rule"),
        "DELETE /repos/{repo}/limit": op("PUT /repos/{repo}/limit", codes=[204]),
        # Nothing says what is read where there is none.
        "GET /repos/{repo}/cap": op(answer="Rule"),
        "PUT /repos/{repo}/cap": op("PUT /repos/{repo}/cap", body="RuleInput", answer="Rule"),
        "DELETE /repos/{repo}/cap": op(codes=[204]),
        # What was put into it would be gone.
        "GET /repos/{repo}/fence": op(answer="Rule", codes=[200, 404]),
        "PUT /repos/{repo}/fence": op("PUT /repos/{repo}/fence", body="RuleInput", answer="Rule"),
        "DELETE /repos/{repo}/fence": op(codes=[204]),
        "POST /repos/{repo}/fence/users": op(body="RuleInput", codes=[200]),
        # A POST makes it, so that the PUT may only change it.
        "GET /repos/{repo}/page": op(answer="Rule", codes=[200, 404]),
        "POST /repos/{repo}/page": op(body="RuleInput", answer="Rule", codes=[201]),
        "PUT /repos/{repo}/page": op("PUT /repos/{repo}/page", body="RuleInput", answer="Rule"),
        "DELETE /repos/{repo}/page": op(codes=[204]),
        # One of several, whatever stands behind its name.
        "GET /pages/{id}.json": op(answer="Rule", codes=[200, 404]),
        "PUT /pages/{id}.json": op("PUT /pages/{id}.json", body="RuleInput", answer="Rule"),
        "DELETE /pages/{id}.json": op(codes=[204]),
        # Values, of which the document doesn't say what they are.
        "GET /linkers/{id}/values": op(codes=[200, 404]),
        "PUT /linkers/{id}/values": op(codes=[204]),
        "DELETE /linkers/{id}/values": op(codes=[204]),
        # Alternatives that only say which fields must be there, null as another one, and real ones.
        "GET /gists/{id}": op(answer="Gist"),
        "PATCH /gists/{id}": op("PATCH /gists/{id}", body="GistInput", answer="Gist"),
        "GET /sheets/{id}": op(answer="Gist"),
        "PATCH /sheets/{id}": op("PATCH /sheets/{id}", body="Perhaps", answer="Gist"),
        "GET /cards/{id}": op(answer="Gist"),
        "PATCH /cards/{id}": op(body="Either", answer="Gist"),
    },
)

# What is said in words: that a POST may change what is there; and states that can be read and not be set.
WORDS: tuple[dict[str, Any], Ops] = (
    {
        "Flow": thing(id=ID, name=TEXT),
        "FlowInput": thing(name=TEXT),
        "Row": thing(name=TEXT, objectVersion=TEXT),
        "Flows": thing(flows={"type": "array", "items": thing(name=TEXT)}),
        "Member": thing(state={"type": "string", "enum": ["active", "pending"]}, role=TEXT),
        "MemberInput": thing(state={"type": "string", "enum": ["active"]}, role=TEXT),
        "StateInput": thing(["state"], state={"type": "string", "enum": ["active"]}),
    },
    {
        f"{verb} /{name}{'' if verb == 'POST' else '/{id}'}": op(
            {"POST": f"DELETE /{name}/{{id}}", "DELETE": f"POST /{name}"}.get(verb, "") if sure else "",
            **({"body": "FlowInput"} if verb == "POST" else {}),
            **({} if verb == "DELETE" else {"answer": "Flow"}),
            **({"said": said, "codes": codes} if verb == "POST" else {}),
        )
        for name, sure, codes, said in (
            ("flows", False, [200], "Create or update a flow"),
            ("jobs", False, [201], "Adds a job. If one of this name exists already, it is overwritten."),
            ("joins", False, [200], "Assigns a channel to a user"),
            ("sums", False, [200], ""),  # a name of its own doesn't say it, either
            ("trips", True, [200], "Creates a new trip"),
        )
        for verb in ("POST", "GET", "DELETE")
    }
    | {
        # A list that is put may be added to what is listed.
        "GET /services": op(answer="Flows"),
        "PUT /services": op(body="Flows", answer="Flows"),
        "GET /service": op(answer="Flow"),
        "PUT /service": op(body="FlowInput", answer="Flow", name="createService"),
        # It ends, and may still be there; a list of what is to be done isn't what is there afterwards.
        "POST /seats": op(body="FlowInput", answer="Flow", codes=[201]),
        "GET /seats/{id}": op(answer="Flow"),
        "DELETE /seats/{id}": op("POST /seats", name="cancelSeat"),
        "GET /zones/{id}": op(answer="Flow"),
        "PATCH /zones/{id}": op(body="FlowInput", said="Creates, modifies and deletes records"),
        # What is written is held against the version that is there: another one by the time of an undo.
        "GET /rows/{id}": op(answer="Row"),
        "PUT /rows/{id}": op(body="Row", answer="Row", codes=[200, 404]),
        "GET /members/{id}": op(answer="Member"),
        "PATCH /members/{id}": op("PATCH /members/{id}", body="MemberInput", answer="Member"),
        "GET /guests/{id}": op(answer="Member"),
        "PATCH /guests/{id}": op(body="StateInput", answer="Member"),
    },
)

# What else changes with a thing: the one that was live before it, what is owed; and a key that each request has.
MORE: tuple[dict[str, Any], Ops] = (
    {
        "Page": thing(id=ID, name=TEXT, published=YES),
        "Bill": thing(id=ID, status=TEXT, note=TEXT),
        "BillInput": thing(status=TEXT, note=TEXT),
        "Coin": thing(id=ID, name=TEXT, size=WHOLE),
        "CoinInput": thing(["name"], name=TEXT, size=WHOLE),
    },
    {
        "GET /pages/{id}": op(answer="Page"),
        "POST /pages/{id}/publish": op("POST /pages/{id}/unpublish", answer="Page"),
        "POST /pages/{id}/unpublish": op("POST /pages/{id}/publish", answer="Page"),
        "GET /games/{game}/snapshots/{id}": op(answer="Page"),
        "POST /games/{game}/snapshots/{id}/publish": op(answer="Page"),
        "POST /games/{game}/snapshots/{id}/unpublish": op(answer="Page"),
        "GET /letters/{id}": op(answer="Bill"),
        "PUT /letters/{id}": op("PUT /letters/{id}", body="BillInput", answer="Bill", codes=[200, 404]),
        "GET /accounts/{account}/invoices/{id}": op(answer="Bill"),
        "PUT /accounts/{account}/invoices/{id}": op(body="BillInput", answer="Bill", codes=[200, 404]),
        "PATCH /accounts/{account}/invoices/{id}": op(body="BillInput", answer="Bill"),
        "GET /coins/{id}": op(answer="Coin"),
        "POST /coins": op(
            "DELETE /coins/{id}", body="CoinInput", answer="Coin", codes=[201], headers=["Idempotency-Key"]
        ),
        "PATCH /coins/{id}": op("PATCH /coins/{id}", body="CoinInput", answer="Coin", headers=["X-Idempotency-Key"]),
        "DELETE /coins/{id}": op("POST /coins", headers=["Idempotency-Key"]),
    },
)

# Of a thing of several kinds the fields of its kind aren't known, so that it is neither made again nor written back
# whole. What is one of these kinds is known, what is only another name for it isn't.
KINDS: tuple[dict[str, Any], Ops] = (
    {
        "Pet": {**thing(["kind"], id=ID, kind=TEXT, name=TEXT), "discriminator": {"propertyName": "kind"}},
        "PetAgain": {"allOf": [{"$ref": "#/components/schemas/Pet"}]},
        "PetInput": thing(name=TEXT),
        "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, thing(hunts=YES)]},
        "Base": thing(id=ID, name=TEXT),
        "Plant": {
            "allOf": [
                {"$ref": "#/components/schemas/Base"},
                {**thing(kind=TEXT), "discriminator": {"propertyName": "kind"}},
            ]
        },
        "PlantInput": thing(name=TEXT, kind=TEXT),
    },
    {
        "POST /pets": op("DELETE /pets/{id}", body="Pet", answer="Pet", codes=[201]),
        "GET /pets/{id}": op(answer="Pet", codes=[200, 404]),
        "PUT /pets/{id}": op(body="Pet", answer="Pet", codes=[200, 404]),
        "PATCH /pets/{id}": op("PATCH /pets/{id}", body="PetInput", answer="Pet"),
        "DELETE /pets/{id}": op(),
        "GET /guests/{id}": op(answer="PetAgain", codes=[200, 404]),
        "PUT /guests/{id}": op(body="PetAgain", answer="PetAgain", codes=[200, 404]),
        "POST /cats": op("DELETE /cats/{id}", body="Cat", answer="Cat", codes=[201]),
        "GET /cats/{id}": op(answer="Cat", codes=[200, 404]),
        "PUT /cats/{id}": op("PUT /cats/{id}", body="Cat", answer="Cat", codes=[200, 404]),
        "DELETE /cats/{id}": op("POST /cats"),
        # Its creation names all the fields that it takes, and its read none of those of its kind.
        "POST /plants": op("DELETE /plants/{id}", body="PlantInput", answer="Plant", codes=[201]),
        "GET /plants/{id}": op(answer="Plant", codes=[200, 404]),
        "DELETE /plants/{id}": op(),
    },
)

# As Django's generator writes it: the id is `pk`, and one schema for body and answer requires what only answers have.
_PK = {**WHOLE, "readOnly": True}
PRIMARY: tuple[dict[str, Any], Ops] = (
    {
        "Crate": thing(["pk", "label"], pk=_PK, label=TEXT, full=YES),
        "Pass": thing(["pk", "label"], pk=_PK, label=TEXT, token={**TEXT, "readOnly": True}),
    },
    {
        "POST /crates": op("DELETE /crates/{id}", body="Crate", answer="Crate", codes=[201]),
        "GET /crates/{id}": op(answer="Crate", codes=[200, 404]),
        "PUT /crates/{id}": op("PUT /crates/{id}", body="Crate", answer="Crate", codes=[200, 404]),
        "DELETE /crates/{id}": op("POST /crates"),
        # Made again it has another token, and who has the old one stays out.
        "POST /passes": op("DELETE /passes/{id}", body="Pass", answer="Pass", codes=[201]),
        "GET /passes/{id}": op(answer="Pass", codes=[200, 404]),
        "DELETE /passes/{id}": op(),
        # An order is for good, whether its collection is called one or many.
        "POST /order": op(body="Crate", answer="Crate", codes=[201]),
        "GET /order/{id}": op(answer="Crate", codes=[200, 404]),
        "DELETE /order/{id}": op(),
    },
)

STYLES: Mapping[str, tuple[dict[str, Any], Ops]] = {
    "forms": FORMS,
    "listed": LISTED,
    "cluster": CLUSTER,
    "members": MEMBERS,
    "parts": PARTS,
    "words": WORDS,
    "more": MORE,
    "kinds": KINDS,
    "primary": PRIMARY,
}
