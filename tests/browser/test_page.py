"""The chat page in a real browser."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import expect

from adapters.base import CardEnd
from adapters.http.ports import Caller
from tests.browser.conftest import Site, Tab, build_site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

CARD = ".card:not([data-outcome])"


class TestWayIn:
    async def test_the_link_logs_in_and_leaves_no_code_behind(self, tab: Tab) -> None:
        assert tab.page.url == tab.site.url
        await expect(tab.page.locator("#text")).to_be_visible()
        await tab.page.go_back()
        assert "code=" not in tab.page.url

    async def test_a_stranger_is_told_what_to_do(self, make_tab: Any, site: Site) -> None:
        tab = await make_tab(log_in=False, expected="status of 401")
        await tab.page.goto(site.url)
        await expect(tab.page.locator("pre")).to_have_text("ostiary link")
        await tab.page.goto(f"{site.url}login?code=old")
        await expect(tab.page.locator("h1")).to_contain_text("does not work any more")

    async def test_without_scripts_the_link_still_leads_in(self, make_tab: Any, site: Site) -> None:
        tab = await make_tab(log_in=False, java_script_enabled=False)
        await tab.page.goto(site.server.login_url())
        await tab.page.wait_for_url(site.url)
        await expect(tab.page).to_have_title("Ostiary")

    async def test_logging_out_locks_the_page(self, make_tab: Any) -> None:
        tab = await make_tab(expected="status of 401")
        await tab.page.click("#logout")
        await expect(tab.page.locator("h1")).to_have_text("Ostiary is locked")


class TestChat:
    async def test_a_message_is_answered(self, tab: Tab) -> None:
        await tab.say("$ echo hi")
        await expect(tab.page.locator(".user")).to_have_text("$ echo hi")
        await expect(tab.page.locator(".assistant pre")).to_have_text("hi")
        await expect(tab.page.locator(".assistant .prose code")).to_have_text("0")
        await expect(tab.page.locator(".tool")).to_have_attribute("data-state", "end")
        await expect(tab.page.locator("#stop")).to_be_hidden()

    async def test_the_answer_streams(self, tab: Tab) -> None:
        await tab.say("hang")
        await expect(tab.page.locator(".assistant.live")).to_have_text("Let me look")
        await expect(tab.page.locator("#activity")).to_have_text("Looking through 1,204 files")
        turn = await tab.turn()
        turn.delta(" around")
        await expect(tab.page.locator(".assistant.live")).to_have_text("Let me look around")
        turn.say("I looked around.", final=True)
        await expect(tab.page.locator(".assistant")).to_have_text("I looked around.")
        await expect(tab.page.locator(".live")).to_have_count(0)

    async def test_many_pieces_become_one_message(self, tab: Tab) -> None:
        await tab.say("count")
        await expect(tab.page.locator(".assistant")).to_have_text(" ".join(str(number) for number in range(1, 41)))

    async def test_stop(self, tab: Tab) -> None:
        await tab.say("hang")
        await tab.page.click("#stop")
        await expect(tab.page.locator("#stop")).to_be_hidden()
        await expect(tab.page.locator("#log")).to_contain_text("Stopped.")

    async def test_a_failed_turn_says_so(self, tab: Tab) -> None:
        await tab.say("fail")
        await expect(tab.page.locator(".assistant")).to_have_text("The model did not answer in time. Try again.")

    async def test_text_of_the_model_stays_text(self, tab: Tab) -> None:
        await tab.say("hostile")
        answer = tab.page.locator(".assistant")
        await expect(answer).to_contain_text("<script>document.title='pwned'</script>")
        await expect(answer.locator("pre")).to_have_text("<b>bold</b>")
        assert await answer.locator("img, script, b").count() == 0
        assert "pwned" not in await tab.page.title()

    async def test_a_message_behind_a_running_turn_waits_below(self, tab: Tab) -> None:
        await tab.say("hang")
        await expect(tab.page.locator(".live")).to_be_visible()
        await tab.say("second")
        await expect(tab.page.locator("#queued .user")).to_have_text("second")
        (await tab.turn()).finish(text="first done")
        await expect(tab.page.locator("#queued")).to_be_hidden()
        await expect(tab.page.locator(".message")).to_have_text(["hang", "first done", "second", "You said: second"])

    async def test_shift_enter_breaks_the_line(self, tab: Tab) -> None:
        await tab.page.type("#text", "one")
        await tab.page.press("#text", "Shift+Enter")
        await tab.page.type("#text", "two")
        await expect(tab.page.locator("#text")).to_have_value("one\ntwo")
        await tab.page.press("#text", "Enter")
        await expect(tab.page.locator(".user .prose")).to_have_text("one\ntwo", use_inner_text=True)
        await expect(tab.page.locator("#text")).to_have_value("")

    async def test_another_window_sees_what_was_said_here(self, tab: Tab, make_tab: Any) -> None:
        await tab.say("hello")
        await expect(tab.page.locator(".assistant")).to_be_visible()
        other: Tab = await make_tab()
        await expect(other.page.locator(".message")).to_have_text(["hello", "You said: hello"])
        await tab.say("again")
        await expect(other.page.locator(".message")).to_have_text(
            ["hello", "You said: hello", "again", "You said: again"]
        )

    async def test_sessions_are_kept_apart(self, tab: Tab) -> None:
        await tab.say("in main")
        await expect(tab.page.locator(".assistant")).to_be_visible()
        await tab.page.fill("#new-name", "a b")
        await tab.page.press("#new-name", "Enter")
        await expect(tab.page.locator("#new-hint")).to_contain_text("without spaces")
        await tab.page.fill("#new-name", "work")
        await tab.page.press("#new-name", "Enter")
        await expect(tab.page.locator("h1")).to_have_text("work")
        await expect(tab.page.locator(".message")).to_have_count(0)
        await tab.say("in work")
        await expect(tab.page.locator(".assistant")).to_have_text("You said: in work")
        await tab.page.click("#sessions a[href='#main']")
        await expect(tab.page.locator(".assistant")).to_have_text("You said: in main")
        await expect(tab.page.locator("#sessions a[aria-current]")).to_contain_text("main")


class TestCards:
    async def test_the_whole_card(self, tab: Tab) -> None:
        await tab.say("$ rm -rf build\u202e/ \u200bcache\u00a0x")
        card = tab.page.locator(CARD)
        await expect(card.locator("h3")).to_have_text("Delete a folder and everything in it")
        await expect(card.locator(".command")).to_have_text("rm -rf build⟨U+202E⟩/ ⟨U+200B⟩cache⟨U+00A0⟩x")
        await expect(card.locator(".buttons button")).to_have_text(["Once", "This session", "Always", "Deny"])
        for text in ("rm with -r deletes", "37 files, 1.2 GB", "fs.rm-recursive", "owner"):
            await expect(card.locator(".facts")).to_contain_text(text)
        await expect(card.locator(".timer")).to_have_text(re.compile(r"^[45]:[0-5][0-9] left$"))
        await expect(tab.page.locator("#state")).to_have_text("waits for your answer")

    @pytest.mark.parametrize(
        ("choice", "says", "answer"),
        [
            ("once", "Approved by owner (once).", "Done: the folder is gone."),
            ("session", "Approved by owner (for this session).", "Done: the folder is gone."),
            ("always", "Approved by owner (always).", "Done: the folder is gone."),
            ("deny", "Denied by owner. It did not run.", "I did not run it: denied."),
        ],
    )
    async def test_each_button(self, tab: Tab, choice: str, says: str, answer: str) -> None:
        await tab.say("$ rm -rf build")
        await tab.page.click(f"{CARD} [data-choice={choice}]")
        await expect(tab.page.locator(".card .says")).to_have_text(says)
        await expect(tab.page.locator(".card .controls")).to_be_hidden()
        await expect(tab.page.locator(".assistant")).to_have_text(answer)

    async def test_a_reason_reaches_the_agent(self, tab: Tab) -> None:
        await tab.say("$ rm -rf build")
        await tab.page.click(f"{CARD} summary")
        await tab.page.fill(f"{CARD} .denial input", "use git clean")
        await tab.page.click(f"{CARD} .deny")
        await expect(tab.page.locator(".assistant")).to_have_text("I did not run it: denied. use git clean")

    async def test_silence(self, tab: Tab) -> None:
        await tab.say("$ rm -rf build")
        await expect(tab.page.locator(CARD)).to_be_visible()
        desk = tab.site.desk
        desk.settle((await tab.turn()).asks[0], CardEnd("timed_out"))
        await expect(tab.page.locator(".says")).to_have_text("Timed out — nothing ran.")
        await expect(tab.page.locator(".buttons")).to_be_hidden()

    async def test_the_countdown_ends_in_buttons_that_do_nothing(self, tab: Tab) -> None:
        await tab.say("hang")
        (await tab.turn()).ask("rm -rf build", timeout_s=1.0)
        card = tab.page.locator(CARD)
        await expect(card.locator(".timer")).to_have_text("time is up")
        await expect(card.locator(".once")).to_be_disabled()

    async def test_a_late_tap_never_looks_like_an_approval(self, make_tab: Any) -> None:
        """The ask has timed out, but the page has not been told: the gateway's answer decides what the card says."""
        tab: Tab = await make_tab(expected="status of 410")
        await tab.say("hang")
        ask = (await tab.turn()).ask("rm -rf build")
        await expect(tab.page.locator(CARD)).to_be_visible()
        ask.end = CardEnd("timed_out")
        await tab.page.click(f"{CARD} .once")
        await expect(tab.page.locator(".says")).to_have_text("Timed out — nothing ran.")

    async def test_somebody_else_was_first(self, make_tab: Any) -> None:
        tab: Tab = await make_tab(expected="status of 409")
        await tab.say("hang")
        ask = (await tab.turn()).ask("rm -rf build")
        await expect(tab.page.locator(CARD)).to_be_visible()
        ask.end = CardEnd("denied", "deny", "telegram:7")
        await tab.page.click(f"{CARD} .once")
        await expect(tab.page.locator(".says")).to_have_text("Denied. It did not run.")

    async def test_not_yours(self, make_tab: Any) -> None:
        tab: Tab = await make_tab(expected="status of 403")
        await tab.say("hang")
        (await tab.turn()).ask("rm -rf build", may_answer={"bob"})
        await tab.page.click(f"{CARD} .once")
        await expect(tab.page.locator(".says")).to_have_text("This is not yours to answer.")
        await expect(tab.page.locator(".once")).to_be_disabled()

    async def test_an_ask_that_the_gateway_lost(self, make_tab: Any) -> None:
        """A button of an entry that is dead must not tick: it says so, and can be tapped no more."""
        tab: Tab = await make_tab(expected="status of 404")
        await tab.say("question")
        await expect(tab.page.locator(CARD)).to_be_visible()
        tab.site.desk.forget_asks()
        await tab.page.click(f"{CARD} [data-choice=green]")
        await expect(tab.page.locator(".says")).to_contain_text("does not know this request any more")
        await expect(tab.page.locator("[data-choice=green]")).to_be_disabled()

    async def test_two_quick_taps_are_one(self, tab: Tab) -> None:
        posts: list[str] = []
        tab.page.on("request", lambda request: posts.append(request.url) if "/v1/asks/" in request.url else None)
        await tab.say("$ rm -rf build")
        await tab.page.dblclick(f"{CARD} .deny")
        await expect(tab.page.locator(".assistant")).to_have_text("I did not run it: denied.")
        assert len(posts) == 1

    async def test_three_cards_each_by_itself(self, tab: Tab) -> None:
        await tab.say("three")
        cards = tab.page.locator(".card")
        await expect(cards).to_have_count(3)
        await cards.nth(1).locator(".deny").click()
        await expect(cards.nth(1).locator(".says")).to_contain_text("Denied")
        await expect(tab.page.locator(CARD)).to_have_count(2)
        await cards.nth(0).locator(".once").click()
        await cards.nth(2).locator(".session").click()
        await expect(tab.page.locator(".assistant")).to_have_text("Ended: approved, denied, approved")

    async def test_a_stop_cancels_the_card(self, tab: Tab) -> None:
        await tab.say("$ rm -rf build")
        await expect(tab.page.locator(CARD)).to_be_visible()
        await tab.page.click("#stop")
        await expect(tab.page.locator(".says")).to_have_text("Cancelled — its turn ended before an answer came.")

    async def test_a_token_is_typed(self, tab: Tab) -> None:
        await tab.say("token")
        card = tab.page.locator(CARD)
        await expect(card.locator(".token")).to_have_text("K7Q2MX")
        await card.locator("input").fill("nonsense")
        await card.locator("input").press("Enter")
        await expect(card.locator(".says")).to_have_text("That is not the text that is shown. Try again.")
        await card.locator("input").fill("k7q2mx")
        await card.get_by_role("button", name="Confirm").click()
        await expect(tab.page.locator(".assistant")).to_have_text("The token was approved.")

    async def test_a_question(self, tab: Tab) -> None:
        await tab.say("question")
        await tab.page.click(f"{CARD} [data-choice=green]")
        await expect(tab.page.locator(".assistant")).to_have_text("You chose green.")

    async def test_a_card_of_another_session_waits_below(self, tab: Tab) -> None:
        await tab.site.desk.post(Caller("owner"), "other", "$ rm -rf build", None)
        await tab.page.reload()
        await expect(tab.page.locator("#elsewhere-title")).to_have_text("1 more request waits for your answer")
        await tab.page.click("#elsewhere-title")
        await expect(tab.page.locator("#elsewhere .facts")).to_contain_text("other")
        await tab.page.click("#elsewhere .deny")
        await expect(tab.page.locator("#elsewhere .says")).to_have_text("Denied by you. It did not run.")
        rows = tab.site.desk.session("owner", "other").rows
        while len(rows) < 2:
            await asyncio.sleep(0.005)
        assert rows[1].text == "I did not run it: denied."


class TestReload:
    async def test_history_and_the_open_card_are_kept(self, tab: Tab) -> None:
        await tab.say("hello")
        await expect(tab.page.locator(".assistant")).to_be_visible()
        await tab.say("$ rm -rf build")
        await expect(tab.page.locator(CARD)).to_be_visible()
        await tab.page.reload()
        await expect(tab.page.locator(".message")).to_have_text(["hello", "You said: hello", "$ rm -rf build"])
        await expect(tab.page.locator(CARD)).to_have_count(1)
        await expect(tab.page.locator("#stop")).to_be_visible()
        await tab.page.click(f"{CARD} .once")
        await expect(tab.page.locator(".assistant").last).to_have_text("Done: the folder is gone.")
        await expect(tab.page.locator(".message")).to_have_count(4)

    async def test_streaming_text_goes_on(self, tab: Tab) -> None:
        await tab.say("hang")
        await expect(tab.page.locator(".live")).to_have_text("Let me look")
        await tab.page.reload()
        await expect(tab.page.locator(".live")).to_have_text("Let me look")
        (await tab.turn()).finish(text="Found.")
        await expect(tab.page.locator(".message")).to_have_text(["hang", "Found."])

    async def test_earlier_messages_on_demand(self, tab: Tab) -> None:
        for number in range(40):
            await tab.site.desk.post(Caller("owner"), "main", f"m{number}", None)
        session = tab.site.desk.session("owner", "main")
        while session.turn is not None:
            await asyncio.sleep(0.005)
        await tab.page.reload()
        await expect(tab.page.locator(".message")).to_have_count(50)
        await expect(tab.page.locator(".user").last).to_be_in_viewport()
        await tab.page.click("#earlier")
        await expect(tab.page.locator(".message")).to_have_count(80)
        await expect(tab.page.locator(".user").first).to_have_text("m0")
        await expect(tab.page.locator("#earlier")).to_be_hidden()


class TestBrokenLines:
    async def test_it_reconnects_and_misses_nothing(self, make_tab: Any, site: Site) -> None:
        """The gateway goes away for a moment with a card open; the card and what was said meanwhile are there again."""
        tab: Tab = await make_tab(expected="Failed to load resource")
        await tab.say("$ rm -rf build")
        await expect(tab.page.locator(CARD)).to_be_visible()
        port = site.server.port
        await site.server.stop()
        await expect(tab.page.locator("#connection")).to_contain_text("Reconnecting")
        site.desk.turn("owner", "main").notice("while you were away")
        again = await build_site(site.folder, port=port, desk=site.desk)
        try:
            await expect(tab.page.locator("#connection")).to_be_hidden()
            await expect(tab.page.locator(".notice")).to_have_text("while you were away")
            await expect(tab.page.locator(CARD)).to_have_count(1)
            await tab.page.click(f"{CARD} .once")
            await expect(tab.page.locator(".assistant")).to_have_text("Done: the folder is gone.")
        finally:
            await again.server.stop()

    async def test_a_message_that_did_not_arrive_can_be_sent_again(self, make_tab: Any) -> None:
        tab: Tab = await make_tab(expected="Failed to load resource")
        await tab.page.route("**/messages", lambda route: route.abort())
        await tab.say("hello")
        await expect(tab.page.locator(".unsent")).to_contain_text("Not sent: The gateway cannot be reached.")
        await tab.page.unroute("**/messages")
        await tab.page.click(".unsent >> text=Send again")
        await expect(tab.page.locator(".message")).to_have_text(["hello", "You said: hello"])

    async def test_an_answer_that_did_not_arrive_can_be_given_again(self, make_tab: Any) -> None:
        tab: Tab = await make_tab(expected="Failed to load resource")
        await tab.say("$ rm -rf build")
        await tab.page.route("**/v1/asks/*", lambda route: route.abort())
        await tab.page.click(f"{CARD} .once")
        await expect(tab.page.locator(".says")).to_have_text("Your answer did not arrive. Try again.")
        await tab.page.unroute("**/v1/asks/*")
        await tab.page.click(f"{CARD} .once")
        await expect(tab.page.locator(".assistant")).to_have_text("Done: the folder is gone.")


class TestForEverybody:
    async def test_with_the_keyboard_alone(self, tab: Tab) -> None:
        keyboard = tab.page.keyboard
        await tab.page.focus("#text")
        await keyboard.type("$ rm -rf build")
        await keyboard.press("Enter")
        await expect(tab.page.locator(f"{CARD} .deny")).to_be_enabled()
        # A card that appears does not take the focus: the next Enter would answer it.
        assert await tab.page.evaluate("document.activeElement.id") == "text"
        for _ in range(12):
            await keyboard.press("Shift+Tab")
            if await tab.page.evaluate("document.activeElement.dataset.choice") == "deny":
                break
        await keyboard.press("Enter")
        await expect(tab.page.locator(".assistant")).to_have_text("I did not run it: denied.")

    async def test_a_phone_has_no_sideways_scrolling(self, make_tab: Any) -> None:
        tab: Tab = await make_tab(viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True)
        await tab.say("$ rm -rf " + "a-very-long-name-without-any-space/" * 12)
        await expect(tab.page.locator(CARD)).to_be_visible()
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 390
        for choice in ("once", "session", "always", "deny"):
            box = await tab.page.locator(f"{CARD} [data-choice={choice}]").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            assert box["height"] >= 40
        await expect(tab.page.locator("#side")).to_be_hidden()
        await tab.page.tap("#menu")
        await expect(tab.page.locator("#sessions a")).to_be_visible()
        await tab.page.keyboard.press("Escape")
        await expect(tab.page.locator("#side")).to_be_hidden()
        await tab.page.locator(f"{CARD} .deny").tap()
        await expect(tab.page.locator(".says")).to_contain_text("Denied")
        await tab.say("token")
        card, confirm = tab.page.locator(CARD), tab.page.get_by_role("button", name="Confirm")
        await expect(confirm).to_be_enabled()
        outer, inner = await card.bounding_box(), await confirm.bounding_box()
        assert outer is not None
        assert inner is not None
        assert inner["x"] + inner["width"] < outer["x"] + outer["width"]

    async def test_what_screen_readers_are_told(self, tab: Tab) -> None:
        await tab.say("$ rm -rf build")
        await expect(tab.page.get_by_role("log")).to_have_attribute("aria-live", "polite")
        card = tab.page.get_by_role("group", name="Delete a folder and everything in it")
        await expect(card.get_by_role("button", name="Deny", exact=True)).to_be_visible()
        await expect(tab.page.get_by_role("textbox", name="Message")).to_be_visible()

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    async def test_contrast_in_both_schemes(self, make_tab: Any, scheme: Any) -> None:
        """Text on its ground reaches 4.5:1, the least that WCAG 2.2 (1.4.3) asks for."""
        tab: Tab = await make_tab(color_scheme=scheme)
        await tab.say("$ rm -rf build\u202e")
        await expect(tab.page.locator(f"{CARD} .deny")).to_be_enabled()
        await tab.say("waits")
        await expect(tab.page.locator("#queued .user")).to_be_visible()
        bad = await tab.page.evaluate(CONTRAST)
        assert bad == []


#: Finds text whose contrast against the ground behind it is below 4.5.
CONTRAST = """() => {
  const parse = (color) => (color.match(/[0-9.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const texts = [...node.childNodes].filter((child) => child.nodeType === 3);
    const text = texts.map((child) => child.data.trim()).join("");
    if (!text || !node.checkVisibility() || node.matches(".unseen, .skip, :disabled")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(`${text}: ${ratio.toFixed(2)}`);
  }
  return bad;
}"""
