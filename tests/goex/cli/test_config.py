"""config.toml: strict, and every error names the key and the file."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from goex.config import BadConfig, Config, load, parse

WHOLE = """
[ask]
seconds = 60
presence_seconds = 0
[model]
base_url = "http://127.0.0.1:8080/v1"
name = "m"
account = "local"
samples = 5
adaptive = false
confidence = 0.9
method = "adaptive+scopes"
temperature = 0
threshold = 0.5
context = ["time"]
about_me = "my boss is Ann"
[sandbox]
runtime = "runsc"
memory = "512 MiB"
cpus = 2
seconds = 30
[sandbox.profiles.code]
runtime = "runc"
memory = "1 GiB"
[sandbox.profiles.mine]
pids = 32
[[agent_socket]]
path = "/run/goex/agent.sock"
users = ["root", 1000]
[files]
max_bytes = "1 GiB"
lfs_from = "64 MiB"
quota = "5 GiB"
keep_days = 7
[grants]
unused_days = 30
[log]
level = "debug"
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


def test_a_missing_or_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path / "config.toml") == Config()
    assert load(written(tmp_path, "")) == Config()
    assert Config().ask.seconds == Config().ask.presence_seconds == 300
    assert (Config().model.method, Config().model.adaptive, Config().model.confidence) == ("adaptive", True, 0.975)
    assert Config().model.context == ("time", "locale", "accounts", "about_me")
    assert (Config().model.samples, Config().model.temperature, Config().model.configured) == (10, 0.3, False)


def test_a_whole_file(tmp_path: Path) -> None:
    config = load(written(tmp_path, WHOLE))
    assert (config.ask.seconds, config.ask.presence_seconds) == (60, 0)
    assert config.model.configured
    assert config.model.temperature == 0.0
    assert (config.model.samples, config.model.adaptive, config.model.confidence) == (5, False, 0.9)
    assert config.model.method == "adaptive+scopes"
    assert (config.model.context, config.model.about_me) == (("time",), "my boss is Ann")
    assert config.sandbox.profile().runtime == "runsc"
    assert config.sandbox.profile().limits.memory == 512 * 2**20
    assert config.sandbox.profile().limits.pids == 64
    code, mine = config.sandbox.profile("code"), config.sandbox.profile("mine")
    assert (code.image, code.runtime, code.limits.memory, code.limits.seconds) == ("code", "runc", 2**30, 30)
    assert (mine.runtime, mine.limits.memory, mine.limits.pids) == ("runsc", 512 * 2**20, 32)
    assert config.sandbox.profile("my-own").limits == config.sandbox.limits
    assert config.agent_sockets[0].uids == {0, 1000}
    assert config.files.max_bytes == 2**30
    assert (config.files.lfs_from, config.files.quota, config.files.keep_days) == (64 * 2**20, 5 * 2**30, 7)
    assert (config.grants.unused_days, Config().grants.unused_days) == (30, 90)
    assert config.log_level == "debug"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[ask]\nsecond = 3", r"\[ask\] second in .*config.toml isn't a setting.*Did you mean seconds"),
        ("[aks]\nseconds = 3", "aks in .*isn't a setting.*Did you mean ask"),
        ("[model]\napi_key = 'k'", r"\[model\] api_key"),
        ("ask = 3", r"\[ask\] in .* must be a table"),
        ("[ask]\nseconds = '3'", "must be a whole number"),
        ("[ask]\nseconds = true", "must be a whole number"),
        ("[ask]\nseconds = 0", "between 1 and 86400"),
        ("[ask]\npresence_seconds = -1", "between 0 and"),
        ("[model]\nbase_url = 'https://x'", "needs both base_url and name"),
        ("[model]\ntemperature = nan", "between 0 and 2"),
        ("[model]\nsamples = 51", r"\[model\] samples .* between 1 and 50"),
        ("[model]\nconfidence = 1", r"\[model\] confidence .* between 0.5 and 0.999"),
        ("[model]\nconfidence = nan", "between 0.5 and"),
        ("[model]\ncontext = ['password']", r"\[model\] context .* time, locale, accounts, about_me"),
        ("[model]\nabout_me = '" + "x" * 2001 + "'", r"\[model\] about_me .* at most 2000"),
        ("[model]\nthreshold = 0", "between 0.05 and 1"),
        ("[model]\nadaptive = 1", r"\[model\] adaptive .* must be true or false"),
        ("[model]\nmethod = 'sc4'", r"\[model\] method .* one of few-shot, .*adaptive"),
        ("[model]\nmethod = 'sc5'\nsamples = 3", r"\[model\] samples .* doesn't go with the method sc5"),
        ("[model]\nmethod = 'few-shot+scopes'\nconfidence = 0.9", r"confidence .* doesn't go with"),
        ("[sandbox]\nruntime = 'kata'", "one of runc, runsc"),
        ("[sandbox.profiles.code]\nruntime = 'kata'", r"\[sandbox.profiles.code\] runtime .* one of runc, runsc"),
        ("[sandbox.profiles.code]\nmemroy = 1", "Did you mean memory"),
        ("[sandbox.profiles.postgresql]\nruntime = 'runsc'", "can't be set"),
        ("[sandbox]\nprofiles = 1", "table of tables"),
        ("[sandbox]\nmemory = 'much'", "a size like"),
        ("[sandbox]\nmemory = 1", "at least"),
        ("[ask]\npresence = 'both'", r"\[ask\] presence .* one of passphrase, passkey"),
        ("[ask]\npresence = 'passkey'\npolkit = true", r"\[ask\] polkit .* a dialog shows no passkey"),
        ("[web]\nport = 80", r"\[web\] port .* between 1024"),
        ("[web]\npublic_url = 'http://goex.example.org'", r"\[web\] public_url .* https"),
        ("[web]\npublic_url = 'https://me@goex.example.org'", r"\[web\] public_url .* https"),
        ("[web]\npublic_url = 'https://goex.example.org/page'", r"\[web\] public_url .* https"),
        ("[web]\npublic_url = 'https://192.0.2.1'", r"\[web\] public_url .* a host's name"),
        ("[web]\npublic_url = 'https://goex.example.org:443'", r"\[web\] public_url .* https"),
        ("[web]\npublic_url = 'https://goex.example.org:x'", r"\[web\] public_url .* https"),
        ("[[agent_socket]]\npath = 'here'", "absolute path"),
        ("[[agent_socket]]\npath = '/a'\nusers = ['no such user']", "no such user"),
        ("[[agent_socket]]\npath = '/a'\nusers = [-1]", "user names or numbers"),
        ("[[agent_socket]]\npath = '/a'\nuser = ['root']", "Did you mean users"),
        ("[log]\nlevel = 'loud'", "one of debug"),
        ("[ask", "isn't TOML"),
        (b"\xff", "isn't TOML"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str | bytes, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadConfig, match=says) as caught:
        load(path)
    assert "config.toml" in str(caught.value)
    assert caught.value.next_step


def test_where_the_page_is(tmp_path: Path) -> None:
    assert Config().ask.presence == "passphrase"
    assert (Config().web.port, Config().web.public_url) == (7464, "")
    config = load(written(tmp_path, "[ask]\npresence = 'passkey'\npolkit = 'also'\n[web]\nport = 8000\n"))
    assert (config.ask.presence, config.ask.polkit, config.web.port) == ("passkey", "also", 8000)
    config = parse({"web": {"public_url": "https://GoEx.example.org:8443/"}})
    assert config.web.public_url == "https://goex.example.org:8443"


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.chmod(0o622)
    with pytest.raises(BadConfig, match="Others may write"):
        load(path)
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
        with pytest.raises(BadConfig, match="Others may write"):
            load(path)


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="isn't a file"):
        load(tmp_path)


def test_a_wrong_key_deep_inside_is_found() -> None:
    with pytest.raises(BadConfig, match="mem"):
        parse({"sandbox": {"mem": 1}})


def test_strict_undo_is_part_of_what_confines() -> None:
    assert not parse({}).confine.strict
    assert parse({"undo": {"strict": True}}).confine.strict
    assert parse({"undo": {"strict_agents": ["bot*"]}}).confine.strict_agents == ("bot*",)


CONFINED = {
    '[confine]\nfolders = ["/home/you/docs"]\nhosts = ["Slack.com"]\nrows = 5\nsession_actions = 9\n': (
        ("/home/you/docs",), ("slack.com",), 5, 9,
    ),
    "": ((), (), 0, 0),
}  # fmt: skip
BAD_CONFINEMENT = {
    '[confine]\nfolders = ["work"]\n': "must hold absolute folders",
    '[confine]\nfolders = ["/home/../etc"]\n': "must hold absolute folders",
    '[confine]\nhosts = "slack.com"\n': "must be a list",
    "[confine]\nhosts = [5]\n": "must be a list of texts",
    '[confine]\nrecipients = [""]\n': "must be a list of texts",
    "[confine]\nrows = -1\n": "must be between",
    '[confine]\nfolder = "/x"\n': "isn't a setting",
    '[undo]\nstrict = "yes"\n': "must be true or false",
    '[undo]\nstrict_agents = "bot"\n': "must be a list",
    "[undo]\nstricter = true\n": "isn't a setting",
    "[breaker]\ndenials = -1\n": "must be between",
    "[breaker]\nminutes = 0\n": "must be between",
    "[breaker]\nforever = true\n": "isn't a setting",
}


@pytest.mark.parametrize("text", CONFINED)
def test_confinement_is_read(text: str) -> None:
    found = parse(tomllib.loads(text)).confine
    assert (found.folders, found.hosts, found.rows, found.session_actions) == CONFINED[text]


@pytest.mark.parametrize("text", BAD_CONFINEMENT)
def test_a_confinement_that_says_nothing_clear_is_an_error(text: str) -> None:
    with pytest.raises(BadConfig, match=BAD_CONFINEMENT[text]):
        parse(tomllib.loads(text))


def test_the_breaker_is_in_minutes() -> None:
    found = parse(tomllib.loads("[breaker]\ndenials = 3\nminutes = 2\nrest_minutes = 5\n")).breaker
    assert (found.denials, found.seconds, found.rest_seconds) == (3, 120, 300)


def test_containers_wait_by_default() -> None:
    for made in (Config(), parse({})):
        assert (made.sandbox.bounds().least, made.sandbox.bounds().most) == (2, 16)
