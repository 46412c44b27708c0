"""Tokens, codes and cookies on their own."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.control.clock import ManualClock
from gateway.web.auth import CODE_S, MAX_CODES, Auth, Cookies, LoginCodes, Patience, Token, Tokens
from gateway.web.exceptions import WebRefused

TOKEN = "s3cret-token"


def auth_of(*tokens: Token, owner: str = TOKEN, clock: ManualClock | None = None) -> Auth:
    return Auth(owner_token=owner, tokens=tokens, clock=clock or ManualClock(), cookie_days=30)


class TestTokens:
    def test_each_user_by_their_token(self) -> None:
        auth = auth_of(Token("a-token", "alice"), Token("b-token", "bob"), Token("a-second", "alice"))
        users = [auth.user_of([f"Bearer {token}"], None) for token in (TOKEN, "a-token", "b-token", "a-second")]
        assert users == ["owner", "alice", "bob", "alice"]

    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer  ",
            "Bearer s3cret-tokeX",
            "Bearer s3cret-toke",
            "Bearer s3cret-token2",
            "Bearer S3CRET-TOKEN",
            "Basic s3cret-token",
            "s3cret-token",
            "Bearer s3cret-token s3cret-token",
            "Bearer \ud800",
            "Bearer \x00",
        ],
    )
    def test_everything_else_is_nobody(self, header: str) -> None:
        assert auth_of().user_of([header], None) is None

    def test_scheme_in_any_case(self) -> None:
        assert auth_of().user_of([f"bearer   {TOKEN}"], None) == "owner"

    def test_two_headers_are_nobody(self) -> None:
        assert auth_of().user_of([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], None) is None

    def test_a_wrong_token_is_not_rescued_by_a_cookie(self) -> None:
        auth = auth_of()
        cookie = auth.cookies.issue("owner")
        assert auth.user_of([], cookie) == "owner"
        assert auth.user_of(["Bearer wrong"], cookie) is None

    @pytest.mark.parametrize(
        "tokens",
        [(Token("", "alice"),), (Token("  ", "alice"),), (Token("t", ""),), (Token("t", "alice"), Token("t", "bob"))],
    )
    def test_tokens_that_would_let_strangers_in_are_refused(self, tokens: tuple[Token, ...]) -> None:
        with pytest.raises(WebRefused):
            auth_of(*tokens)

    @pytest.mark.parametrize("owner", ["", " \n"])
    def test_an_empty_owner_token_is_refused(self, owner: str) -> None:
        with pytest.raises(WebRefused, match="http_token"):
            auth_of(owner=owner)

    def test_the_line_break_of_the_file_is_no_part_of_the_token(self) -> None:
        assert auth_of(owner=f"{TOKEN}\n").user_of([f"Bearer {TOKEN}"], None) == "owner"

    def test_no_secret_in_a_representation(self) -> None:
        assert TOKEN not in repr(Token(TOKEN, "alice"))


class TestCodes:
    def test_single_use(self) -> None:
        codes = LoginCodes(ManualClock())
        code = codes.new("owner")
        assert codes.take(code) == "owner"
        assert codes.take(code) is None

    @pytest.mark.parametrize("guess", ["", "x", "\ud800"])
    def test_a_guess_takes_nothing(self, guess: str) -> None:
        codes = LoginCodes(ManualClock())
        code = codes.new("owner")
        assert codes.take(guess) is None
        assert codes.take(code) == "owner"

    async def test_too_old(self) -> None:
        clock = ManualClock()
        codes = LoginCodes(clock)
        in_time, late = codes.new("owner"), codes.new("owner")
        await clock.advance(CODE_S - 1)
        assert codes.take(in_time) == "owner"
        await clock.advance(1)
        assert codes.take(late) is None

    def test_the_wall_clock_does_not_matter(self) -> None:
        clock = ManualClock()
        codes = LoginCodes(clock)
        code = codes.new("owner")
        clock.step_wall(timedelta(days=400))
        assert codes.take(code) == "owner"

    def test_the_oldest_gives_way(self) -> None:
        codes = LoginCodes(ManualClock())
        many = [codes.new("owner") for _ in range(MAX_CODES + 1)]
        assert codes.take(many[0]) is None
        assert all(codes.take(code) == "owner" for code in many[1:])


class TestCookies:
    def cookies(self, clock: ManualClock, *tokens: Token) -> Cookies:
        return Cookies(Tokens(tokens or (Token(TOKEN, "owner"),)), clock, days=30)

    def test_genuine_also_after_a_restart(self) -> None:
        clock = ManualClock()
        value = self.cookies(clock).issue("owner")
        assert self.cookies(clock).user_of(value) == "owner"

    def test_void_with_another_token(self) -> None:
        clock = ManualClock()
        value = self.cookies(clock).issue("owner")
        assert self.cookies(clock, Token("another", "owner")).user_of(value) is None

    def test_void_when_the_user_is_gone(self) -> None:
        clock = ManualClock()
        both = (Token(TOKEN, "owner"), Token("a", "alice"))
        value = self.cookies(clock, *both).issue("alice")
        assert self.cookies(clock, *both).user_of(value) == "alice"
        assert self.cookies(clock).user_of(value) is None

    def test_expires(self) -> None:
        clock = ManualClock()
        cookies = self.cookies(clock)
        value = cookies.issue("owner")
        clock.step_wall(timedelta(days=30, seconds=-1))
        assert cookies.user_of(value) == "owner"
        clock.step_wall(timedelta(seconds=1))
        assert cookies.user_of(value) is None

    def test_each_part_is_signed(self) -> None:
        clock = ManualClock()
        both = (Token(TOKEN, "owner"), Token("a", "alice"))
        cookies = self.cookies(clock, *both)
        mine, hers = cookies.issue("alice").split("."), cookies.issue("owner").split(".")
        assert len(mine) == 5
        for index in range(1, 5):
            forged = [*mine[:index], hers[index], *mine[index + 1 :]]
            if forged != mine:
                assert cookies.user_of(".".join(forged)) is None, index
        later = [*mine[:2], str(int(mine[2]) + 9), *mine[3:]]
        assert cookies.user_of(".".join(later)) is None

    @pytest.mark.parametrize(
        "value",
        [
            "",
            ".",
            "....",
            "v1....",
            "v2.b3duZXI.9999999999.x.y",
            "v1.!!!.1.x.y",
            "v1.b3duZXI.x.y.z",
            "ä.ö.ü.ß.€",
            "\ud800",
        ],
    )
    def test_rubbish_is_nobody(self, value: str) -> None:
        assert self.cookies(ManualClock()).user_of(value) is None

    def test_the_token_is_not_in_the_cookie(self) -> None:
        assert TOKEN not in self.cookies(ManualClock()).issue("owner")

    def test_none_for_a_stranger(self) -> None:
        with pytest.raises(LookupError):
            self.cookies(ManualClock()).issue("mallory")


async def test_failed_logins_make_everybody_wait_and_patience_returns() -> None:
    clock = ManualClock()
    patience = Patience(clock)
    failures = 0
    while not patience.wait_s():
        patience.failed()
        failures += 1
    assert failures == 20
    await clock.advance(patience.wait_s())
    assert patience.wait_s() == 0
