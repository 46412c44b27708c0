from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import config_loader, config_rules, config_show, config_tree, config_yaml
from gateway.config import Config
from gateway.config_loader import Layer, Loaded
from gateway.exceptions import ConfigError, Problem

Load = Callable[..., Loaded]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads the given text as the file, with the given environment and ``--set`` options."""

    def load(text: str = "", *sets: str, environ: Mapping[str, str] | None = None) -> Loaded:
        file = tmp_path / "config.yaml"
        file.write_text(textwrap.dedent(text))
        return config_loader.load(file, required=True, environ=environ or {}, sets=sets)

    return load


def problem(call: Callable[[], object]) -> Problem:
    """The one problem that ``call`` is refused with."""
    with pytest.raises(ConfigError) as caught:
        call()
    assert len(caught.value.problems) == 1, str(caught.value)
    return caught.value.first


class TestSchema:
    def test_defaults_pass_their_own_rules(self) -> None:
        assert msgspec.convert(msgspec.to_builtins(Config()), Config) == Config()
        assert config_rules.check(Config(), {}) == []

    def test_pinned_keys_exist(self) -> None:
        """The names that scripts rely on; dropping one is a breaking change."""
        pinned = """
            model: provider name base_url api_key max_output_tokens request_s fallback
            agent: max_turns child_max_turns max_children heartbeat_s child_idle_s child_tool_s language
            gateway: busy queue_max max_running_turns inactivity_warn_s inactivity_cancel_s drain_s give_up_s
            approvals: mode timeout_s token_s question_s i_understand judge.provider judge.name chat
            limits: model_silence_s validation_s sandbox_start_s read_s write_s terminal_s terminal_max_s output_bytes
            sandbox: engine required uid max_running image network memory_mb pids cpus disk_mb mounts docker_host
            sandbox.ssh: host user key
            skills: creation_nudge_interval review_max_turns
            profile: rounds retention_days
            takeover: validation_failures dissatisfactions queue_chat
            trash: keep_h
            access: pairing
            store: synchronous
            adapters.http: enabled host port tokens allowed_hosts cookie_days
            adapters.telegram: enabled token base_url allowed_users require_mention
            adapters.telegram.webhook: enabled url secret
            adapters.slack: enabled mode bot_token app_token signing_secret base_url allowed_users require_mention
            log: format level
            mcp: servers
            schedule: jobs
            webhooks: routes
        """
        keys = {
            f"{section}.{name}"
            for section, names in (line.strip().split(": ") for line in pinned.strip().splitlines())
            for name in names.split()
        }
        assert {leaf.key for leaf in config_tree.leaves()} == keys

    def test_every_key_is_described(self) -> None:
        for member in (config_tree.tree(), *config_tree.members()):
            if isinstance(member, config_tree.Branch) and member.path:
                assert set(config_tree.described(member.type)) == set(member.members), member.path

    def test_secrets_are_marked(self) -> None:
        secret = {leaf.key for leaf in config_tree.leaves() if leaf.secret}
        assert secret == {
            "model.api_key",
            "adapters.telegram.token",
            "adapters.telegram.webhook.secret",
            "adapters.slack.bot_token",
            "adapters.slack.app_token",
            "adapters.slack.signing_secret",
            "mcp.servers",
            "schedule.jobs",
            "webhooks.routes",
        }


class TestPrecedence:
    def test_command_line_over_environment_over_file_over_defaults(self, load: Load) -> None:
        text = """
            limits:
              read_s: 1
              write_s: 1
              terminal_s: 1
        """
        environ = {"OSTIARY_LIMITS__WRITE_S": "2", "OSTIARY_LIMITS__TERMINAL_S": "2"}
        loaded = load(text, "limits.terminal_s=3", environ=environ)
        limits = loaded.config.limits
        assert (limits.validation_s, limits.read_s, limits.write_s, limits.terminal_s) == (5, 1, 2, 3)
        places = [loaded.origins[f"limits.{name}"] for name in ("validation_s", "read_s", "write_s", "terminal_s")]
        assert [place.layer for place in places] == [
            Layer.DEFAULT,
            Layer.FILE,
            Layer.ENVIRONMENT,
            Layer.COMMAND_LINE,
        ]
        assert str(places[1]).endswith("config.yaml:3")
        assert str(places[2]) == "environment variable OSTIARY_LIMITS__WRITE_S"
        assert str(places[3]) == "--set limits.terminal_s"

    def test_every_leaf_has_an_origin(self, load: Load) -> None:
        assert set(load().origins) == {leaf.key for leaf in config_tree.leaves()}

    def test_last_set_counts(self, load: Load) -> None:
        assert load("", "gateway.queue_max=5", "gateway.queue_max=7").config.gateway.queue_max == 7

    def test_whole_section_as_yaml(self, load: Load) -> None:
        loaded = load("", "log={level: debug, format: json}", environ={"OSTIARY_LOG": "{level: error}"})
        assert (loaded.config.log.level, loaded.config.log.format) == ("debug", "json")

    def test_without_file(self, tmp_path: Path) -> None:
        missing = tmp_path / "none.yaml"
        assert config_loader.load(missing, required=False, environ={}).config == Config()
        assert problem(lambda: config_loader.load(missing, required=True, environ={})).source == str(missing)

    def test_home_is_no_key(self, load: Load) -> None:
        assert load(environ={"OSTIARY_HOME": "/x", "PATH": "/bin"}).config == Config()


class TestTexts:
    @pytest.mark.parametrize("text", ["1, 2", '["1", "2"]', "[1, 2]", "1,2", " 1 , 2, "])
    def test_lists_from_the_environment(self, load: Load, text: str) -> None:
        loaded = load(environ={"OSTIARY_ADAPTERS__SLACK__ALLOWED_USERS": text})
        assert loaded.config.adapters.slack.allowed_users == ("1", "2")

    @pytest.mark.parametrize(
        ("text", "users"), [("42", ("42",)), ("U0AB", ("U0AB",)), ('"*"', ('"*"',)), ("*", ("*",))]
    )
    def test_single_value_is_a_list_of_one(self, load: Load, text: str, users: tuple[str, ...]) -> None:
        loaded = load(environ={"OSTIARY_ADAPTERS__SLACK__ALLOWED_USERS": text})
        assert loaded.config.adapters.slack.allowed_users == users

    @pytest.mark.parametrize("value", ["42", '"42"', "[42]", "['42']", '"42,"'])
    def test_lists_in_the_file(self, load: Load, value: str) -> None:
        loaded = load(f"adapters: {{telegram: {{allowed_users: {value}}}}}")
        assert loaded.config.adapters.telegram.allowed_users == ("42",)

    def test_list_of_sections(self, load: Load) -> None:
        environ = {"OSTIARY_ADAPTERS__HTTP__TOKENS": "{token: abc, user: ann}"}
        assert load(environ=environ).config.adapters.http.tokens[0].roles == ("admin",)
        environ = {"OSTIARY_ADAPTERS__HTTP__TOKENS": "[{token: abc, user: ann, roles: [user]}]"}
        assert load(environ=environ).config.adapters.http.tokens[0].roles == ("user",)

    @pytest.mark.parametrize("text", ["123456", "true", "a: b #c", "0x10", "2026-01-01", "{x", "'", "- a"])
    def test_text_stays_as_it_is(self, load: Load, text: str) -> None:
        assert load("", f"model.api_key={text}").config.model.api_key == text
        assert load(environ={"OSTIARY_MODEL__API_KEY": text}).config.model.api_key == text

    def test_quotes_around_a_text_go(self, load: Load) -> None:
        assert load("", "model.name='a b'").config.model.name == "a b"

    @pytest.mark.parametrize("word", ["off", "Off", "no", "'off'"])
    def test_yaml_booleans_are_words_where_words_are_meant(self, load: Load, word: str) -> None:
        assert load(f"sandbox: {{network: {word}}}").config.sandbox.network == "off"
        assert load(f"approvals: {{mode: {word}, i_understand: yes}}").config.approvals.mode == "off"

    def test_yaml_boolean_that_is_no_word(self, load: Load) -> None:
        found = problem(lambda: load("approvals: {mode: on}"))
        assert found.key == "approvals.mode"
        assert "`manual`" in found.suggestion

    @pytest.mark.parametrize("text", ["", "~", "null", " "])
    def test_empty_value_is_absent(self, load: Load, text: str) -> None:
        assert load("log: {level: debug}", f"log.level={text}").config.log.level == "debug"

    def test_empty_section_is_absent(self, load: Load) -> None:
        assert load("adapters:\n  slack:\nlog:\n").config == Config()

    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "~"])
    def test_empty_file(self, load: Load, text: str) -> None:
        assert load(text).config == Config()

    def test_byte_order_mark(self, tmp_path: Path) -> None:
        file = tmp_path / "c.yaml"
        file.write_bytes(b"\xef\xbb\xbflog: {level: debug}\n")
        assert config_loader.load(file, required=True, environ={}).config.log.level == "debug"


class TestReferences:
    def test_variables_and_files(self, load: Load, tmp_path: Path) -> None:
        secret = tmp_path / "key"
        secret.write_text("s3cret-key\n")
        text = f"""
            model: {{api_key: "${{file:{secret}}}", name: "a-${{NAME}}-$${{x}}"}}
            adapters: {{http: {{port: "${{PORT}}", allowed_hosts: ["${{NAME}}.example"]}}}}
        """
        loaded = load(text, environ={"NAME": "n", "PORT": "9000"})
        assert loaded.config.model.api_key == "s3cret-key"
        assert loaded.config.model.name == "a-n-${x}"
        assert loaded.config.adapters.http.port == 9000
        assert loaded.config.adapters.http.allowed_hosts == ("n.example",)
        assert loaded.secrets() == {"s3cret-key"}

    def test_file_content_is_a_secret_wherever_it_went(self, load: Load, tmp_path: Path) -> None:
        secret = tmp_path / "key"
        secret.write_text("s3cret-key")
        loaded = load(f'model: {{base_url: "https://u:${{file:{secret}}}@h"}}')
        assert "s3cret-key" in loaded.secrets()
        assert "s3cret-key" not in str(config_show.rows(loaded))

    @pytest.mark.parametrize("value", ["${NO_SUCH}", "${file:/no/such}", "${}", "${file:}"])
    def test_missing_is_an_error(self, load: Load, value: str) -> None:
        found = problem(lambda: load(f'model:\n  api_key: "{value}"\n'))
        assert found.key == "model.api_key"
        assert found.source.endswith("config.yaml:2")

    def test_only_in_the_file(self, load: Load) -> None:
        assert load("", "model.name=${HOME}").config.model.name == "${HOME}"

    @given(st.text())
    def test_filling_never_breaks(self, text: str) -> None:
        try:
            filled = config_yaml.fill(text, {})
        except ValueError:
            return
        assert filled.changed == ("${" in text and filled.text != text)


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "key", "suggestion"),
        [
            ("limits: {terminal: 5}", "limits.terminal", "terminal_s"),
            ("limit: {read_s: 5}", "limit", "limits"),
            ("port: 80", "port", "adapters.http.port"),
            ("telegram: {token: x}", "telegram", "adapters.telegram"),
            ("gateway: {allow_all_users: true}", "gateway.allow_all_users", "busy"),
            ("adapters: {http: {tokens: [{token: a, user: b, role: c}]}}", "adapters.http.tokens[].role", "roles"),
            ("approvals: {mode: manuel}", "approvals.mode", "manual"),
            ("model: {name: 5}", "model.name", "quotes"),
            ("log: 5", "log", "level"),
            ("log: [a]", "log", "level"),
            ("5: 5", "5", "quotes"),
        ],
    )
    def test_names_file_line_key_and_suggestion(self, load: Load, text: str, key: str, suggestion: str) -> None:
        found = problem(lambda: load(text))
        assert ".yaml" in found.source
        assert found.key.replace("[0]", "[]") == key
        assert found.reason
        assert suggestion in found.suggestion

    @pytest.mark.parametrize(
        ("name", "suggestion"),
        [
            ("OSTIARY_HOM", "OSTIARY_HOME"),
            ("OSTIARY_LOG__LEVLE", "OSTIARY_LOG__LEVEL"),
            ("OSTIARY_LOG_LEVEL", "OSTIARY_LOG__LEVEL"),
            ("OSTIARY_LOG__LEVEL__X", "OSTIARY_LOG__LEVEL"),
        ],
    )
    def test_unknown_variable(self, load: Load, name: str, suggestion: str) -> None:
        found = problem(lambda: load(environ={name: "x"}))
        assert name in found.source
        assert suggestion in found.suggestion

    @pytest.mark.parametrize(
        ("text", "key", "suggestion"),
        [
            ("enabled: true", "token", "BotFather"),
            ("enabled: true, token: abc", "token", "BotFather"),
            ("enabled: true, token: '1:a', base_url: 'http://x.test'", "base_url", "8081/bot"),
            ("allowed_users: ['@alice']", "allowed_users", "ids cannot"),
            (
                "enabled: true, token: '1:a', webhook: {enabled: true, secret: 0123456789abcdefg}",
                "webhook.url",
                "https",
            ),
            (
                "enabled: true, token: '1:a', webhook: {enabled: true, url: 'https://b.test/t', secret: 'short'}",
                "webhook.secret",
                "random",
            ),
        ],
    )
    def test_telegram(self, load: Load, text: str, key: str, suggestion: str) -> None:
        found = problem(lambda: load(f"adapters: {{http: {{allowed_hosts: [b.test]}}, telegram: {{{text}}}}}"))
        assert found.key == f"adapters.telegram.{key}"
        assert suggestion in found.suggestion

    def test_the_webhooks_name_must_be_one_of_ours(self, load: Load) -> None:
        hook = "{enabled: true, url: 'https://b.test/t', secret: 0123456789abcdefg}"
        found = problem(lambda: load(f"adapters: {{telegram: {{enabled: true, token: '1:a', webhook: {hook}}}}}"))
        assert (found.key, "b.test" in found.reason) == ("adapters.http.allowed_hosts", True)

    @pytest.mark.parametrize("item", ["log.level", "=5", ".a=1", "log..level=debug"])
    def test_malformed_set(self, load: Load, item: str) -> None:
        assert problem(lambda: load("", item)).source.startswith("--set")

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("log:\n  level: debug\n\tformat: json\n", 3),
            ("log:\n  level: debug\n format: json\n", 3),
            ("log: {level: debug\n", 2),
            ("log:\n  level: debug\n  level: info\n", 3),
            ("log: {level: debug}\nlog: {level: info}\n", 2),
            ("- a\n", 1),
            ("log: !!python/object:os.system {}\n", 1),
            ("log: *nothing\n", 1),
        ],
    )
    def test_yaml_errors_name_file_and_line(self, load: Load, text: str, line: int) -> None:
        assert problem(lambda: load(text)).source.endswith(f"config.yaml:{line}")

    def test_not_utf8(self, tmp_path: Path) -> None:
        file = tmp_path / "c.yaml"
        file.write_bytes(b"log:\n  level: d\xe9bug\n")
        assert problem(lambda: config_loader.load(file, required=True, environ={})).source == f"{file}:2"

    def test_folder_in_place_of_the_file(self, tmp_path: Path) -> None:
        assert problem(lambda: config_loader.load(tmp_path, required=True, environ={})).source == str(tmp_path)

    @pytest.mark.parametrize(
        "text",
        [
            "approvals: {timeout_s: 0}",
            "approvals: {timeout_s: -1}",
            "approvals: {timeout_s: .inf}",
            "approvals: {timeout_s: .nan}",
            "approvals: {timeout_s: '300'}",
            "approvals: {timeout_s: true}",
            "agent: {max_turns: 201}",
            "agent: {max_turns: 0}",
            "gateway: {queue_max: 1.5}",
            "sandbox: {uid: 0}",
            "sandbox: {mounts: [{path: relative}]}",
            "adapters: {http: {port: 65536}}",
            "adapters: {http: {tokens: [{token: '', user: a}]}}",
            "adapters: {http: {tokens: [{token: a, user: ''}]}}",
            "adapters: {http: {tokens: [{token: a, user: 'a/b'}]}}",
            "adapters: {http: {tokens: [{token: a}]}}",
            "adapters: {http: {tokens: [{token: a, user: a, roles: [root]}]}}",
            "adapters: {http: {host: ''}}",
            "adapters: {telegram: {enabled: 1}}",
        ],
    )
    def test_ranges(self, load: Load, text: str) -> None:
        found = problem(lambda: load(text))
        assert found.key
        assert found.source.endswith("config.yaml:1")

    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("limits: {terminal_s: 1300}", "limits.terminal_s"),
            ("limits: {terminal_max_s: 60}", "limits.terminal_s"),
            ("gateway: {inactivity_warn_s: 1800}", "gateway.inactivity_warn_s"),
            ("agent: {max_turns: 10}", "agent.child_max_turns"),
            ("agent: {heartbeat_s: 300}", "agent.heartbeat_s"),
            ("agent: {child_idle_s: 1300}", "agent.child_idle_s"),
            ("approvals: {mode: off}", "approvals.mode"),
            ("adapters: {http: {tokens: [{token: a, user: a}, {token: a, user: b}]}}", "adapters.http.tokens"),
            ("adapters: {http: {tokens: [{token: ' ', user: a}]}}", "adapters.http.tokens[0].token"),
            (
                "adapters: {http: {tokens: [{token: a, user: u}, {token: b, user: u, roles: [viewer]}]}}",
                "adapters.http.tokens[1].roles",
            ),
            (
                "adapters: {http: {tokens: [{token: a, user: owner, roles: [viewer]}]}}",
                "adapters.http.tokens[0].roles",
            ),
            ("model: {provider: openai}", "model.provider"),
        ],
    )
    def test_rules_between_keys(self, load: Load, text: str, key: str) -> None:
        found = problem(lambda: load(text))
        assert found.key == key
        assert found.source.endswith("config.yaml:1") or "[" in key

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example"])
    def test_open_address_needs_tokens(self, load: Load, host: str) -> None:
        found = problem(lambda: load("", f"adapters.http.host={host}"))
        assert found.key == "adapters.http.host"
        assert "tokens" in found.suggestion
        loaded = load("", f"adapters.http.host={host}", "adapters.http.tokens=[{token: abc, user: ann}]")
        assert loaded.config.adapters.http.host == host

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
    def test_loopback_needs_none(self, load: Load, host: str) -> None:
        assert load("", f"adapters.http.host={host}").config.adapters.http.host == host

    def test_everything_wrong_is_said_at_once(self, load: Load) -> None:
        with pytest.raises(ConfigError) as caught:
            load("log: {levl: x, format: y}\nport: 5", "a.b=c", environ={"OSTIARY_X": "1"})
        assert len(caught.value.problems) == 5

    @given(value=st.text(min_size=12).filter(str.strip), leaf=st.sampled_from(list(config_tree.leaves())))
    def test_no_error_shows_a_value(self, value: str, leaf: config_tree.Leaf) -> None:
        """A secret in the wrong place, or a wrong secret, is never repeated."""
        secret = f"xyzzy{value}plugh"
        sets = [f"{leaf.key}={secret}", f"{leaf.key}x={secret}"]
        with pytest.raises(ConfigError) as caught:
            config_loader.load(Path("/nonexistent"), required=False, environ={}, sets=sets)
        assert "xyzzy" not in str(caught.value)
        assert "plugh" not in str(caught.value)


class TestIneffective:
    def test_nothing_set_nothing_said(self, load: Load) -> None:
        assert load().ineffective() == []

    def test_keys_of_later_features(self, load: Load) -> None:
        sentences = load("adapters: {slack: {enabled: true, bot_token: '1:a'}}\ntrash: {keep_h: 2}").ineffective()
        assert [sentence.split(" ")[0] for sentence in sentences] == [
            "trash.keep_h",
            "adapters.slack.enabled",
            "adapters.slack.bot_token",
        ]
        assert "Slack" in sentences[1]
        assert "config.yaml:1" in sentences[1]
        assert "1:a" not in str(sentences)

    def test_values_of_later_features(self, load: Load) -> None:
        assert "queued" in load("gateway: {busy: steer}").ineffective()[0]
        assert load("gateway: {busy: queue}").ineffective() == []

    def test_tables_name_real_keys(self) -> None:
        known = {".".join(member.path) for member in config_tree.members()}
        assert set(config_rules.LATER) <= known
        options = {leaf.key: leaf.options for leaf in config_tree.leaves()}
        assert all(value in options[key] for key, value in config_rules.LATER_VALUES)


class TestShow:
    def test_secrets_are_masked(self, load: Load) -> None:
        text = """
            model: {api_key: verysecret}
            adapters: {http: {tokens: [{token: verysecret2, user: ann}]}}
            mcp: {servers: {x: {env: {KEY: verysecret3}}}}
        """
        loaded = load(text)
        shown = str(config_show.rows(loaded)) + str(config_show.nested(loaded))
        assert "verysecret" not in shown
        assert "ann" in shown
        assert loaded.secrets() == {"verysecret", "verysecret2", "verysecret3"}

    def test_an_empty_secret_is_seen_to_be_empty(self, load: Load) -> None:
        rows = {row.key: row.value for row in config_show.rows(load())}
        assert rows["model.api_key"] == ""

    def test_nested_can_be_loaded_again(self, load: Load) -> None:
        assert msgspec.convert(config_show.nested(load()), Config) == Config()

    def test_manual_is_in_step(self) -> None:
        """The tables in the manual are the schema's; `make docs` writes them."""
        page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
        assert config_show.manual() in page
