"""The attacks on the gateway, and past it, as rows; each test holds the attack and, after it, its control.

Who refuses is said by what the control takes away: a class of unsafe_gateway.py, a defence of the container, or a
mount that no job gets.
"""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_GATEWAY = "tests/adversarial/test_gateway.py"
_SERVERS = "tests/adversarial/test_gateway_servers.py"
_INSIDE = "tests/adversarial/test_inside.py"
_OWNER = "tests/runtimes/rest/test_path_owner.py"

_NETWORK = ("own network namespace with loopback alone",)
_SOCKETS = ("own mounts", "a user other than root", "the system call allow-list")


def _row(
    name: str, tries: str, refused_by: tuple[str, ...], test: str, control: str = "", where: Where = Where.GATEWAY
) -> Attack:
    return Attack(name=name, tries=tries, where=where, refused_by=refused_by, test=test, control=control or test)


ROWS = (
    _row(
        "another_host",
        "send to a host that the plan doesn't name",
        ("the plan's hosts",),
        f"{_GATEWAY}::test_another_host",
    ),
    _row("raw_address", "the same by its address", ("the plan's hosts",), f"{_GATEWAY}::test_a_raw_ip"),
    _row("another_path", "ask for another path", ("the plan's paths",), f"{_GATEWAY}::test_another_path[/api/admin]"),
    _row(
        "dots_in_the_path",
        "reach another path by dots",
        ("the plan's paths",),
        f"{_GATEWAY}::test_another_path[/api/../admin]",
    ),
    _row(
        "encoded_dots",
        "the same, percent-encoded",
        ("the plan's paths",),
        f"{_GATEWAY}::test_another_path[/api/%2e%2e/admin]",
    ),
    _row(
        "encoded_slash",
        "the same behind an encoded slash",
        ("the plan's paths",),
        f"{_GATEWAY}::test_another_path[/api/messages%2f..%2fadmin]",
    ),
    _row(
        "another_method", "DELETE what it may only write", ("the plan's methods",), f"{_GATEWAY}::test_another_method"
    ),
    _row(
        "second_use",
        "send what was allowed once a second time",
        ("each request once",),
        f"{_GATEWAY}::test_a_second_use",
    ),
    _row("another_body", "send another body", ("the plan's bodies",), f"{_GATEWAY}::test_another_body[body0]"),
    _row("batch", "several requests in one body", ("the plan's bodies",), f"{_GATEWAY}::test_another_body[body1]"),
    _row("graphql", "a GraphQL mutation in the body", ("the plan's bodies",), f"{_GATEWAY}::test_another_body[body2]"),
    *(
        _row(f"graphql_{name}", tries, ("the plan's bodies",), f"{_GATEWAY}::test_another_graphql_document[{id}]")
        for name, tries, id in (
            ("document", "send another GraphQL document than was printed", "document"),
            ("operations", "a second operation behind it", "operations"),
            ("alias", "another root field under an alias", "alias"),
            ("fragment", "more fields by a fragment", "fragment"),
            ("batch", "a batch of documents", "batch"),
            ("persisted", "a persisted query's hash in the place of a document", "hash"),
        )
    ),
    _row(
        "token_in_query",
        "carry an own credential in the query",
        ("the plan's queries",),
        f"{_GATEWAY}::test_credentials_and_anything_else_in_the_query[access_token=mine]",
    ),
    _row(
        "query_twice",
        "hide a second value behind the first",
        ("the plan's queries",),
        f"{_GATEWAY}::test_credentials_and_anything_else_in_the_query[a=b&a=b]",
    ),
    _row(
        "own_token",
        "carry data out to an allowed host by an own account's token",
        ("no credential but the vault's",),
        f"{_GATEWAY}::test_an_own_token[Authorization]",
    ),
    _row(
        "own_cookie",
        "the same by a cookie",
        ("no credential but the vault's",),
        f"{_GATEWAY}::test_an_own_token[Cookie]",
    ),
    _row(
        "token_place",
        "fill the place of the vault's credential",
        ("no credential but the vault's",),
        f"{_GATEWAY}::test_an_own_token[X-Own-Place]",
    ),
    _row(
        "method_override",
        "another method by a header",
        ("headers that change the meaning",),
        f"{_GATEWAY}::test_an_override[X-HTTP-Method-Override]",
    ),
    _row(
        "path_override",
        "another path by a header",
        ("headers that change the meaning",),
        f"{_GATEWAY}::test_an_override[X-Original-URL]",
    ),
    _row(
        "sni",
        "another name in the handshake (SNI)",
        ("the handshake's name",),
        f"{_GATEWAY}::test_another_name_in_the_handshake",
    ),
    _row(
        "host_header", "another name in the Host header", ("the Host header",), f"{_GATEWAY}::test_another_host_header"
    ),
    _row(
        "absolute_form",
        "a target that names another host",
        ("a target is a path",),
        f"{_GATEWAY}::test_a_target_that_names_another_host[https://evil.example/api/messages]",
    ),
    _row(
        "network_path",
        "the same without a scheme",
        ("a target is a path",),
        f"{_GATEWAY}::test_a_target_that_names_another_host[//evil.example/api/messages]",
    ),
    _row(
        "downgrade",
        "plain http where the plan has TLS",
        ("the plan's schemes",),
        f"{_GATEWAY}::test_a_plain_request_for_a_tls_origin",
    ),
    _row(
        "length_and_chunks",
        "smuggle by two framings",
        ("a strict head",),
        f"{_GATEWAY}::test_smuggling[length and chunks]",
    ),
    _row("two_lengths", "smuggle by two lengths", ("a strict head",), f"{_GATEWAY}::test_smuggling[two lengths]"),
    _row("folded_line", "smuggle by a folded line", ("a strict head",), f"{_GATEWAY}::test_smuggling[a folded line]"),
    _row("bare_line_feed", "smuggle by a bare LF", ("a strict head",), f"{_GATEWAY}::test_smuggling[a bare LF]"),
    _row(
        "name_to_metadata",
        "a name that leads to the cloud's metadata",
        ("addresses that aren't connected to",),
        f"{_SERVERS}::test_a_name_that_leads_inside[found0]",
    ),
    _row(
        "name_to_loopback",
        "a name that leads to this machine",
        ("addresses that aren't connected to",),
        f"{_SERVERS}::test_a_name_that_leads_inside[found1]",
    ),
    _row(
        "name_to_network",
        "a name that leads into the private network",
        ("addresses that aren't connected to",),
        f"{_SERVERS}::test_a_name_that_leads_inside[found2]",
    ),
    _row(
        "mapped_address",
        "the same, as an IPv6 address",
        ("addresses that aren't connected to",),
        f"{_SERVERS}::test_a_name_that_leads_inside[found3]",
    ),
    _row(
        "mixed_addresses",
        "a good address first, another after it",
        ("addresses that aren't connected to",),
        f"{_SERVERS}::test_a_name_that_leads_inside[found4]",
    ),
    _row(
        "metadata_by_account",
        "the metadata through a private account",
        ("addresses that aren't connected to",),
        f"{_SERVERS}::test_metadata_for_a_private_account",
    ),
    _row("rebinding", "another address at the second look-up", ("the pinned address",), f"{_SERVERS}::test_rebinding"),
    _row(
        "redirect",
        "redirect the credential elsewhere",
        ("redirects are answers",),
        f"{_SERVERS}::test_a_redirect_to_elsewhere",
    ),
    _row("echo", "have the service say the secret back", ("redaction",), f"{_SERVERS}::test_an_echo[raw-body]"),
    _row("echo_in_error", "the same in an error's text", ("redaction",), f"{_SERVERS}::test_an_echo[raw-error]"),
    _row("echo_in_header", "the same in a header", ("redaction",), f"{_SERVERS}::test_an_echo[raw-header]"),
    _row("echo_compressed", "the same, compressed", ("redaction",), f"{_SERVERS}::test_an_echo[raw-gzip]"),
    _row("echo_in_chunks", "the same, cut into chunks", ("redaction",), f"{_SERVERS}::test_an_echo[raw-chunks]"),
    _row(
        "echo_shifted",
        "the same in base64, at any offset",
        ("redaction",),
        f"{_SERVERS}::test_an_echo[base64, shifted by one-json]",
    ),
    _row(
        "echo_escaped",
        "the same in escapes within escapes",
        ("redaction",),
        f"{_SERVERS}::test_an_echo[json within json-json]",
    ),
    _row(
        "bomb",
        "an answer that unpacks to more than there is room for",
        ("a bound on what is unpacked",),
        f"{_SERVERS}::test_a_decompression_bomb[gzip]",
    ),
    _row(
        "header_injection",
        "an answer's value that ends the line",
        ("one encoded segment each", "a library writes the request"),
        f"{_SERVERS}::test_an_answer_that_fills_more_than_a_value[x HTTP/1.1\\r\\nX-Evil: 1\\r\\nX-Rest:]",
    ),
    _row(
        "value_with_dots",
        "an answer's value that leads to another path",
        ("one encoded segment each", "a library writes the request"),
        f"{_SERVERS}::test_an_answer_that_fills_more_than_a_value[../admin]",
    ),
    _row(
        "going_on",
        "go on with a plan whose first step failed",
        ("the plan's conditions",),
        f"{_SERVERS}::test_going_on_after_a_failure",
    ),
    _row(
        "direct_address",
        "connect past the gateway",
        _NETWORK,
        f"{_INSIDE}::test_there_is_no_network_at_all",
        f"{_INSIDE}::test_control_with_the_hosts_network",
        Where.CONTAINER,
    ),
    _row(
        "direct_metadata",
        "reach the cloud's metadata past the gateway",
        _NETWORK,
        f"{_INSIDE}::test_there_is_no_network_at_all",
        f"{_INSIDE}::test_control_with_the_hosts_network",
        Where.CONTAINER,
    ),
    _row(
        "dns",
        "carry data out in questions to a resolver",
        _NETWORK,
        f"{_INSIDE}::test_there_is_no_network_at_all",
        f"{_INSIDE}::test_control_with_the_hosts_network",
        Where.CONTAINER,
    ),
    _row(
        "sockets_of_the_daemon",
        "approve its own request at user.sock",
        _SOCKETS,
        f"{_INSIDE}::test_the_sockets_of_the_daemon_and_of_the_engine",
        where=Where.CONTAINER,
    ),
    _row(
        "socket_of_the_engine",
        "start a container at Docker's socket",
        _SOCKETS,
        f"{_INSIDE}::test_the_sockets_of_the_daemon_and_of_the_engine",
        where=Where.CONTAINER,
    ),
    _row(
        "folder_of_the_socket",
        "leave a file in the gateway's folder",
        ("a user other than root", "the job's own files can't be changed"),
        f"{_INSIDE}::test_the_folder_of_the_socket_can_not_be_written",
        where=Where.CONTAINER,
    ),
    _row(
        "anothers_socket",
        "send by another action's socket",
        ("own mounts",),
        f"{_INSIDE}::test_another_actions_socket",
        where=Where.NEIGHBOUR,
    ),
    _row(
        "search_for_sockets",
        "find any socket but its own",
        ("own mounts",),
        f"{_INSIDE}::test_another_actions_socket",
        where=Where.NEIGHBOUR,
    ),
    _row(
        "anothers_tmp",
        "read what another action left in /tmp",
        ("a container is used once",),
        f"{_INSIDE}::test_another_containers_tmp",
        where=Where.NEIGHBOUR,
    ),
    _row(
        "path_of_another_method",
        "have a method called that nobody was asked about, by an id that is a word of its path",
        ("a call's path is held against those of the service's other methods",),
        f"{_OWNER}::test_a_value_makes_no_other_methods_path[a_word]",
    ),
    _row(
        "divided_path_of_another_method",
        "the same by an encoded slash that a server divides the path at",
        ("a call's path is held against those of the service's other methods",),
        f"{_OWNER}::test_a_value_makes_no_other_methods_path[encoded_twice]",
    ),
    _row(
        "answer_names_another_method",
        "the same by an id that an answer says, which nobody has seen",
        ("the values that answers fill in are held to what the plan's may be",),
        f"{_OWNER}::test_an_answer_makes_no_other_methods_path[a_word]",
    ),
    _row(
        "override_in_a_call",
        "have a change taken for a deletion by a field of its body, like _method",
        ("no name by which servers take a request for another",),
        f"{_OWNER}::test_no_value_says_another_http_method[a_field]",
    ),
    _row(
        "override_in_a_free_query",
        "the same by a key of an object that is sent as the query",
        ("no name by which servers take a request for another",),
        f"{_OWNER}::test_no_value_says_another_http_method[a_free_query]",
    ),
)
