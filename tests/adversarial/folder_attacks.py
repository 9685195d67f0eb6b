"""Attacks on folders and their names."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_FILE = "tests/adversarial/test_folders.py"

RIGHTS = {
    "acl_for_another_user": "give another user a file of root's, by an ACL on the copy",
    "default_acl": "give another user all that is made in root's folder from now on, by a default ACL",
    "world_writable": "open a file and a folder of root's to be written by everyone",
    "private_made_readable": "open a private file of root's to everyone",
    "private_under_a_new_name": "give a private file a new name, and open that",
    "out_of_a_private_folder": "move a file out of a private folder",
    "mask_lifted": "lift the mask that closes an entry of an ACL",
    "denied_user_forgotten": "drop the ACL entry that keeps a user out",
    "linked_to_anothers_file": "make a private file one with a file of another user's",
    "linked_under_an_earlier_name": "open a private file by a link that comes first",
    "sticky_bit_off": "take off the bit that keeps others from deleting files",
    "set_group_id_folder": "make a folder give its group to what is made in it",
    "attribute_read_as_owner": "leave the attribute that a file server reads an owner from",
}
GROUPS = {
    "named_beside_a_group": "name a user whose group the mode keeps out",
    "denial_dropped_in_a_group": "drop the ACL entry that keeps out a member of a group that may read",
    "denial_lost_by_a_rename": "write a file anew over one whose ACL keeps out a member of a group that may read",
    "linked_out_of_a_private_folder": "make a file in a private folder one with a name outside",
    "copied_there_and_linked_out": "copy a file within its private folder, and make the copy one with a name outside",
}
CONTENTS = {
    "private_over_an_open_name": "move a private file over one that everyone may read",
    "private_written_into_an_open_file": "write what is private into a file that everyone may read",
    "private_and_open_exchanged": "exchange what a private and an open file hold",
    "private_written_into_anothers_file": "write what is private into a file of another user's",
    "private_over_anothers_name": "move a private file over one of another user's",
}
_NAMES = {
    "paths_told_apart": (
        "tell by refusals which paths are there, under root",
        "test_not_told_paths_apart",
        "test_the_person_is_told_paths_apart",
    ),
    "names_by_polling_undo": (
        "learn what the person makes in a folder by asking for an undo again and again",
        "test_not_told_names_by_polling_undo",
        "",
    ),
    "names_by_a_plan": (
        "learn names in a folder from a plan that nobody allowed",
        "test_not_told_names_by_a_plan",
        "",
    ),
    "actions_of_others": (
        "learn of other agents' actions and folders from what stands on one's own",
        "test_not_told_actions_of_others",
        "",
    ),
}

ROWS: tuple[Attack, ...] = (
    *(
        Attack(
            name=name,
            tries=tries,
            where=Where.FOLDER,
            refused_by=("rights that weren't there aren't applied",),
            test=f"{_FILE}::test_refused[{name}]",
            control=f"{_FILE}::test_control[{name}]",
        )
        for name, tries in RIGHTS.items()
    ),
    *(
        Attack(
            name=name,
            tries=tries,
            where=Where.FOLDER,
            refused_by=("rights that weren't there aren't applied",),
            test=f"tests/adversarial/test_group_rights.py::test_refused[{name}]",
            control=f"tests/adversarial/test_group_rights.py::test_control[{name}]",
        )
        for name, tries in GROUPS.items()
    ),
    *(
        Attack(
            name=name,
            tries=tries,
            where=Where.FOLDER,
            refused_by=("a content stays as closed as it was",),
            test=f"tests/adversarial/test_contents.py::test_refused[{name}]",
            control=f"tests/adversarial/test_contents.py::test_control[{name}]",
        )
        for name, tries in CONTENTS.items()
    ),
    *(
        Attack(
            name=name,
            tries=tries,
            where=Where.FOLDER,
            refused_by=("an agent is told nothing of a folder before it was allowed",),
            test=f"{_FILE}::{test}",
            control=f"{_FILE}::{control or test}",
        )
        for name, (tries, test, control) in _NAMES.items()
    ),
)
