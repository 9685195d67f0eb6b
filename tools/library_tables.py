"""Makes the tables of `mapper.code.library_tables` from installed libraries, by their source: nothing of it is run.

    python -m tools.library_tables

Taken are facts alone: which function asks for which address by which HTTP method, under which names its arguments are
sent, and of which class its answer is. Only a maintainer runs this, with the libraries installed.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_CALLS = re.compile(r"`\s*(GET|POST|PUT|PATCH|DELETE) (/[^\s<`]*)")
_SENDING = {
    "_get": "GET",
    "_post": "POST",
    "_put": "PUT",
    "_patch": "PATCH",
    "_delete": "DELETE",
    "_get_api_list": "GET",
}
_PARAMETERS = frozenset({"post_parameters", "url_parameters", "put_parameters", "patch_parameters"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def slack_sdk(folder: Path) -> dict[str, Any]:
    """The names of slack_sdk's functions: those that hand `json` to its api_call, those that hand it `data`, and those
    that ask by GET, as its asynchronous client then does."""
    tree = ast.parse((folder / "web" / "client.py").read_text(encoding="utf-8"))
    made: dict[str, set[str]] = {"json": set(), "data": set(), "get": set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for keyword in (keyword for call in _calls(node, {"api_call"}) for keyword in call.keywords):
                if keyword.arg in ("json", "data"):
                    made[keyword.arg].add(node.name)
                elif keyword.arg == "http_verb" and ast.literal_eval(keyword.value) == "GET":
                    made["get"].add(node.name)
    return {name: sorted(names) for name, names in made.items()}


def github(folder: Path) -> dict[str, Any]:
    """PyGithub's classes: what their functions call (as their descriptions say), send and give."""
    classes: dict[str, Any] = {}
    for file in sorted(folder.glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
    made: dict[str, Any] = {}
    for name, node in classes.items():
        methods: dict[str, Any] = {}
        attributes: dict[str, str] = {}
        for each in node.body:
            if not isinstance(each, ast.FunctionDef) or each.name.startswith("__"):
                continue
            gives = [one for one in _names(each.returns) if one in classes]
            many = "PaginatedList" in _names(each.returns) or "list" in _names(each.returns)
            gives = [one for one in gives if one != "PaginatedList"]
            if any(isinstance(one, ast.Name) and one.id == "property" for one in each.decorator_list):
                if gives and not many:
                    attributes[each.name] = gives[0]
                continue
            if any(isinstance(one, ast.Name) and one.id == "overload" for one in each.decorator_list):
                continue
            found = [[verb, path.rstrip("/")] for verb, path in _CALLS.findall(ast.get_docstring(each) or "")]
            if not found:
                continue
            arguments = [one.arg for one in (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)][1:]
            methods[each.name] = {
                "calls": found, "arguments": arguments, "sent": _sent(each, set(arguments)),
                **({"gives": gives} if gives else {}), **({"many": True} if many and gives else {}),
            }  # fmt: skip
        bases = [one for base in node.bases for one in _names(base) if one in classes]
        if methods or attributes or bases:
            made[name] = {"methods": methods, "attributes": attributes, "bases": bases}
    kept = {name: one for name, one in made.items() if one["methods"] or one["attributes"] or one["bases"]}
    return {"classes": kept}


def openai(folder: Path) -> dict[str, Any]:
    """The openai package's functions by their full names below a client: HTTP method and path."""
    return _chains(folder, "_client.OpenAI")


def anthropic(folder: Path) -> dict[str, Any]:
    """The same of the anthropic package, which is built alike; without what a machine asks that works for Anthropic's
    own agents, which no program does that uses the service."""
    made = _chains(folder, "_client.Anthropic")
    return {"chains": {name: call for name, call in made["chains"].items() if ".environments.work." not in name}}


def _chains(folder: Path, client: str) -> dict[str, Any]:
    classes: dict[str, tuple[ast.ClassDef, str]] = {}
    for file in sorted(folder.rglob("*.py")):
        module = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[f"{module}.{node.name}"] = (node, module)
    chains: dict[str, list[str]] = {}

    def below(key: str, chain: tuple[str, ...]) -> None:
        node, module = classes[key]
        for each in node.body:
            if not isinstance(each, ast.FunctionDef):
                continue
            if any(isinstance(one, ast.Name) and one.id == "cached_property" for one in each.decorator_list):
                target = _imported(each, classes, module)
                if target and len(chain) < 6 and "with_" not in each.name:
                    below(target, (*chain, each.name))
                continue
            for call in _calls(each, set(_SENDING)):
                assert isinstance(call.func, ast.Attribute)
                path = _path(call.args[0]) if call.args else ""
                if path:
                    verb = next((str(one.value.value) for one in call.keywords if one.arg == "method"
                                 and isinstance(one.value, ast.Constant)), _SENDING[call.func.attr])  # fmt: skip
                    chains.setdefault(".".join((*chain, each.name)), [verb.upper(), path])

    below(client, ())
    return {"chains": dict(sorted(chains.items()))}


def notion_client(folder: Path) -> dict[str, Any]:
    """notion-client's functions by their full names below a client: HTTP method and path."""
    tree = ast.parse((folder / "api_endpoints.py").read_text(encoding="utf-8"))
    tree.body += ast.parse((folder / "client.py").read_text(encoding="utf-8")).body
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    chains: dict[str, list[str]] = {}

    def below(name: str, chain: tuple[str, ...]) -> None:
        for node in ast.walk(classes[name]):
            match node:
                case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=ast.Call(func=ast.Name(id=kind))):
                    if kind in classes and kind.endswith("Endpoint"):
                        below(kind, (*chain, attribute))
                case ast.FunctionDef(name=function):
                    for call in _calls(node, {"request"}):
                        given = {one.arg: one.value for one in call.keywords}
                        if isinstance(verb := given.get("method"), ast.Constant) and (path := _path(given["path"])):
                            called = chain if function == "__call__" else (*chain, function)
                            chains.setdefault(".".join(called), [str(verb.value), f"/{path}"])

    below("BaseClient", ())
    return {"chains": dict(sorted(chains.items()))}


def _imported(function: ast.FunctionDef, classes: dict[str, Any], module: str) -> str:
    """The class that a property gives, by the import in it or in its module."""
    wanted = next(iter(_names(function.returns)), "")
    found = [key for key in classes if key.rpartition(".")[2] == wanted]
    for node in ast.walk(function):
        if isinstance(node, ast.ImportFrom):
            below = [key for key in found if (node.module or "") in key]
            found = below or found
    nearest = [key for key in found if key.startswith(module.rpartition(".")[0])] or found
    return min(nearest, key=len, default="")


def _path(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as path):
            return path
        case ast.Call(func=ast.Name(id="path_template"), args=[ast.Constant(value=str() as path), *_]):
            return path
        case ast.JoinedStr(values=values):
            return "".join(
                str(each.value) if isinstance(each, ast.Constant)
                else f"{{{each.value.id}}}" if isinstance(each, ast.FormattedValue) and isinstance(each.value, ast.Name)
                else "{}"
                for each in values
            )  # fmt: skip
    return ""


def _calls(function: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield node


def _sent(function: ast.FunctionDef, arguments: set[str]) -> dict[str, list[Any]]:
    """By argument: the name that it is sent under, and whether it is sent as it is given."""
    sent: dict[str, list[Any]] = {}
    for key, value in _pairs(function):
        used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} & arguments
        if len(used) == 1:
            argument = used.pop()
            plainly = isinstance(value, ast.Name)
            there = sent.get(argument)
            sent[argument] = [key, plainly and (there is None or bool(there[1]))]
    for node in ast.walk(function):  # an argument that is made into something else first isn't sent as it is given
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in sent:
                    sent[target.id][1] = False
    return sent


def _pairs(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            match node.targets[0]:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key_text)):
                    if name in _PARAMETERS:
                        yield key_text, node.value


def _names(node: ast.expr | None) -> list[str]:
    """The names in an annotation, in order."""
    if node is None:
        return []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    return [
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
    ]


def gitlab(folder: Path) -> dict[str, Any]:
    """python-gitlab's classes. A manager has an address, and the class of what it gives; an object the managers below
    it; a function of either is one of those that all have (`_GITLAB_KINDS`), or the method, what comes behind the
    object's own address (arguments by their names), its arguments, and the names that these are sent under."""
    classes: dict[str, ast.ClassDef] = {}
    for file in (folder / "mixins.py", folder / "client.py", *sorted((folder / "v4" / "objects").glob("*.py"))):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
    made: dict[str, Any] = {"Gitlab": {"managers": _gitlab_managers(classes["Gitlab"]), "methods": {}}}
    for name, node in classes.items():
        line = _line(node, classes)
        said = {key: value for one in reversed(line) for key, value in _assigned(one).items()}
        methods = {key: asked for one in reversed(line) for key, asked in _gitlab_methods(one).items()}
        methods = {key: asked for key, asked in sorted(methods.items()) if asked is not None}
        if isinstance(path := said.get("_path"), ast.Constant):
            gives = _names(said.get("_obj_cls"))
            verb = "POST" if "POST" in _names(said.get("_update_method")) else "PUT"
            made[name] = {"path": path.value, "gives": "".join(gives), "methods": methods, "update": verb}
        elif name != "RESTObject" and any("RESTObject" in _names(base) for one in line for base in one.bases):
            key = said.get("_id_attr")
            managers = {
                each.target.id: found for one in line for each in one.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id != "manager"
                for found in _names(each.annotation) if found.endswith("Manager")
            }  # fmt: skip
            made[name] = {"managers": managers, "methods": methods,
                          "id": key.value if isinstance(key, ast.Constant) else "id"}  # fmt: skip
    return {"classes": made}


# What the functions do that python-gitlab's classes have in common.
_GITLAB_KINDS = {
    "GetMixin": {"get": "get"}, "GetWithoutIdMixin": {"get": "get_alone"}, "ListMixin": {"list": "list"},
    "CreateMixin": {"create": "create"}, "UpdateMixin": {"update": "update"}, "DeleteMixin": {"delete": "delete"},
    "SaveMixin": {"save": "save"}, "ObjectDeleteMixin": {"delete": "delete_self"},
    "RefreshMixin": {"refresh": "refresh"},
}  # fmt: skip


def _line(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """A class and those that it comes from, nearest first."""
    found = [node]
    for base in node.bases:
        for name in _names(base)[:2]:
            if name in classes and name.endswith("Mixin"):
                found += [one for one in _line(classes[name], classes) if one not in found]
    return found


def _assigned(node: ast.ClassDef) -> dict[str, ast.expr]:
    """What a class gives names in its own body."""
    return {
        each.targets[0].id: each.value for each in node.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }  # fmt: skip


def _gitlab_managers(client: ast.ClassDef) -> dict[str, str]:
    return {
        node.targets[0].attr: node.value.func.attr for node in ast.walk(client)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr.endswith("Manager") and len(node.value.args) == 1
    } | {
        each.target.attr: _names(each.value)[0] for each in ast.walk(client)
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Attribute) and each.value is not None
        and _names(each.value) and _names(each.value)[0].endswith("Manager")
    }  # fmt: skip


def _gitlab_methods(node: ast.ClassDef) -> dict[str, Any]:
    """What a class's own functions ask for; None for those of which that isn't known."""
    if node.name in _GITLAB_KINDS:
        return dict(_GITLAB_KINDS[node.name])
    return {
        each.name: _gitlab_asked(each) for each in node.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and each.name != "head"
    }  # fmt: skip


def _gitlab_asked(function: ast.FunctionDef) -> list[Any] | None:
    verbs = {"http_get": "GET", "http_list": "GET", "http_post": "POST", "http_put": "PUT", "http_delete": "DELETE"}
    calls = list(_calls(function, {*verbs, "http_patch", "http_request"}))
    if len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute) or calls[0].func.attr not in verbs:
        return None
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    given.setdefault(target.id, []).append(node.value)
    arguments = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)][1:]
    wanted = calls[0].args[0] if calls[0].args else ast.Constant("")
    known = given.get(wanted.id, []) if isinstance(wanted, ast.Name) else [wanted]
    where = _gitlab_path(known[0], set(arguments)) if len(known) == 1 else None
    if where is None:
        return None
    sent: list[list[str]] | None = []
    for keyword in calls[0].keywords:
        if keyword.arg in ("post_data", "query_data"):
            value = given.get(keyword.value.id, []) if isinstance(keyword.value, ast.Name) else [keyword.value]
            one = value[0] if len(value) == 1 else None
            changed = isinstance(keyword.value, ast.Name) and any(
                isinstance(node, ast.Subscript | ast.Attribute) and _names(node.value)[:1] == [keyword.value.id]
                for node in ast.walk(function)
            )
            sent = None if changed else _plainly(one, arguments)
    sent = sent if len(calls[0].args) == 1 else None
    return [verbs[calls[0].func.attr], where, arguments, sent]


def _plainly(node: ast.expr | None, arguments: Sequence[str]) -> list[list[str]] | None:
    """Arguments and the names that a written mapping gives them; None for what holds anything else."""
    if not isinstance(node, ast.Dict):
        return None
    found = []
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(value, ast.Name) and value.id in arguments):
            return None
        found.append([value.id, key.value])
    return found


def _gitlab_path(node: ast.expr, arguments: set[str]) -> str | None:
    """What an address has behind the object's own one; None for another address."""
    written = ast.unparse(node)
    if written in ("self.path", "self.manager.path"):
        return "" if written == "self.path" else None
    if not isinstance(node, ast.JoinedStr):
        return None
    made = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            made += str(part.value)
            continue
        inner = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
        name = re.fullmatch(r"(?:(?:utils\.)?EncodedId\()?(\w+)\)?", inner)
        made += f"{{{name[1]}}}" if name and name[1] in arguments else f"<{inner}>"
    for own in ("<self.manager.path>/<self.encoded_id>", "<self.path>"):
        if made.startswith(own) and "<" not in made.removeprefix(own):
            return made.removeprefix(own)
    return None


_OCTOKIT = "@octokit/plugin-rest-endpoint-methods@18.0.0"
_TABLES = (
    ("slack_sdk", slack_sdk), ("github", github), ("openai", openai), ("anthropic", anthropic),
    ("notion_client", notion_client), ("gitlab", gitlab),
)  # fmt: skip


def main() -> None:
    out = Path(__file__).parents[1] / "mapper" / "code" / "library_tables"
    for name, make in _TABLES:
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{name} isn't installed")
        made = make(Path(spec.submodule_search_locations[0]))
        lines = [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in _flat(made)]
        (out / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    (out / "octokit.json").write_text(json.dumps(octokit(_endpoints()), indent=0) + "\n", encoding="utf-8")


def octokit(endpoints: str) -> dict[str, str]:
    """The method and address of each of octokit's functions, but of those that send something in a way of its own."""
    made: dict[str, str] = {}
    for scope in re.finditer(r"^  (\w+): \{\n(.*?)^  \}", endpoints, re.MULTILINE | re.DOTALL):
        for one in re.finditer(
            r"^    (\w+): \[\s*\"([^\"]+)\"(.*?)\],?\n(?=    \w|\Z)", scope[2], re.MULTILINE | re.DOTALL
        ):
            if not re.search(r"\b(?:mapToData|renamedParameters|baseUrl|headers)\b", one[3]):
                made[f"{scope[1]}.{one[1]}"] = one[2]
    return made


def _endpoints() -> str:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", _OCTOKIT], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            file = archive.extractfile("package/dist-src/generated/endpoints.js")
            assert file is not None
            return file.read().decode()


def _flat(made: dict[str, Any]) -> list[tuple[str, Any]]:
    """One entry a line."""
    return list(made.items()) if "json" in made else list(next(iter(made.values())).items())


if __name__ == "__main__":
    main()
