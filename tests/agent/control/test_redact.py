from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.control.redact import MASK, MIN_LENGTH, Redactor, is_secret_name

secrets = st.text(min_size=MIN_LENGTH, max_size=60)

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----"


class TestKnown:
    @given(secrets, st.text(), st.text())
    def test_no_known_secret_survives(self, secret: str, before: str, after: str) -> None:
        assume(secret not in MASK * 3)
        assert secret not in Redactor([secret]).known(before + secret + after).replace(MASK, "\0")

    @given(st.lists(secrets, min_size=1, max_size=5), st.text())
    def test_several(self, known: list[str], text: str) -> None:
        redacted = Redactor(known).known(text.join(known)).replace(MASK, "\0")
        assert not any(secret in redacted for secret in known)

    @pytest.mark.parametrize(
        "form",
        [
            json.dumps,
            lambda secret: json.dumps(secret, ensure_ascii=False),
            repr,
            lambda secret: quote(secret, safe=""),
            quote,
            quote_plus,
            lambda secret: base64.b64encode(secret.encode()).decode(),
            lambda secret: base64.b64encode(b"user:" + secret.encode()).decode(),
            lambda secret: base64.b64encode(b"us:" + secret.encode() + b"tail").decode(),
            lambda secret: base64.urlsafe_b64encode(b"u" + secret.encode()).decode(),
        ],
    )
    @pytest.mark.parametrize("secret", ["hunter2hunter2", "a/b+c d?e=f&g", 'quo"te\\back\nline', "schlüssel→key"])
    def test_encoded_forms(self, secret: str, form: object) -> None:
        assert callable(form)
        encoded = str(form(secret))
        redacted = Redactor([secret])(f"x {encoded} y")
        assert MASK in redacted
        # what is left of an encoding of other text around it is less than a character of the secret
        assert len(redacted) < len("x  y") + len(MASK) + 16

    def test_short_ones_are_left(self) -> None:
        assert Redactor(["abc", ""])("abc is a word") == "abc is a word"

    def test_longer_secret_first(self) -> None:
        assert Redactor(["abcdef", "abcdefghi"])("abcdefghi") == MASK

    def test_lines_of_a_key_file(self) -> None:
        assert Redactor([PEM]).known("line: MIIEpAIBAAKCAQEA end") == f"line: {MASK} end"

    def test_learns(self) -> None:
        redactor = Redactor(["first-secret"])
        redactor.learn("second-secret")
        assert redactor("first-secret second-secret") == f"{MASK} {MASK}"

    def test_lone_surrogates(self) -> None:
        assert Redactor(["secret\ud800"])("x secret\ud800") == f"x {MASK}"


class TestShapes:
    @pytest.mark.parametrize(
        ("text", "secret"),
        [
            ("https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe", "AAHdqTcvCH1vGW"),
            ("token xoxb-123456789012-abcdefABCDEF", "123456789012"),
            ("xapp-1-A111-222-abcdef", "A111"),
            ("https://hooks.slack.com/services/T000/B000/XXXX", "T000"),
            ("key sk-ant-api03-abcdefghijklmnop", "abcdefghijklmnop"),
            ("sk-1234567890abcdef", "1234567890"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"),
            ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "11ABCDEFG0"),
            ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "eyJzdWIi"),
            ("Authorization: Bearer abcdefgh12345678", "abcdefgh"),
            ("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
            ("postgres://user:p4ss@host/db", "p4ss"),
            ("http://127.0.0.1:8642/login?code=ABCDEFGH", "ABCDEFGH"),
            ("password=hunter2", "hunter2"),
            ("DB_PASSWORD: hunter2", "hunter2"),
            ('{"api_key": "a b c"}', "a b c"),
            ("{'client_secret': 'x y'}", "x y"),
            ("ACCESS-KEY = abc", "abc"),
            (f"before\n{PEM}\nafter", "MIIEpAIB"),
            ("cut -----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN", "MIIEvQIB"),
        ],
    )
    def test_found(self, text: str, secret: str) -> None:
        redacted = Redactor()(text)
        assert secret not in redacted
        assert MASK in redacted

    def test_what_stands_around_stays(self) -> None:
        assert Redactor()(f"before\n{PEM}\nafter") == f"before\n{MASK}\nafter"
        assert Redactor()("password=a&x=1") == f"password={MASK}&x=1"
        assert Redactor()("postgres://user:p4ss@host/db") == f"postgres://user:{MASK}@host/db"

    @pytest.mark.parametrize(
        "text",
        [
            "max_output_tokens: 4096",
            "the token bucket is full",
            "message_accepted session=http:owner/main at 2026-01-01T00:00:00Z",
            "rm -rf build",
            "a task-force of 12",
            "/workspace/src/passwords.py",
            "http://127.0.0.1:8642/v1/sessions",
        ],
    )
    def test_plain_text_is_left(self, text: str) -> None:
        assert Redactor()(text) == text

    @given(st.text())
    def test_idempotent(self, text: str) -> None:
        once = Redactor()(text)
        assert Redactor()(once) == once


class TestBounded:
    @given(st.integers(min_value=0, max_value=60), st.integers(min_value=20, max_value=60))
    def test_a_secret_across_the_cut_is_gone(self, offset: int, limit: int) -> None:
        secret = "hunter2-hunter2"
        cut = Redactor([secret]).bounded("." * offset + secret + "." * 5000, limit)
        assert "hunter" not in cut

    def test_short_text_is_not_cut(self) -> None:
        assert Redactor().bounded("short", 10) == "short"

    def test_says_how_long_it_was(self) -> None:
        assert Redactor().bounded("x" * 20_000, 10).endswith("(20,000 characters)")


@pytest.mark.parametrize("piece", ["A", "-----BEGIN PRIVATE KEY-----", "token", "1234567:", "eyJ", "://a:", "sk-", '"'])
def test_time_is_linear(piece: str) -> None:
    """A megabyte of the beginnings of secrets; quadratic matching would take hours and meet the suite's limit."""
    Redactor(["hunter2hunter2"])(piece * (1_000_000 // len(piece)))


@pytest.mark.parametrize("name", ["password", "http_token", "Authorization", "API-KEY", "client_secret", "set-cookie"])
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_output_tokens", "key", "session", "passage", "secretary"])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)
