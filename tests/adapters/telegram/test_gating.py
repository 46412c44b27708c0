"""Who is served and what is taken as addressed: entities that the server made, and nothing else."""

from __future__ import annotations

import pytest

from adapters.base import ConversationKind
from adapters.testing.telegram import Chat, FakeTelegram, Message, Person
from tests.adapters.telegram.notebook import Notebook, connected


async def seen(telegram: FakeTelegram, person: Person, *, require_mention: bool = True) -> list[str]:
    """What reaches the gateway of everything so far; ``person`` writes a last word that does."""
    notebook = Notebook()
    async with connected(telegram, notebook, require_mention=require_mention):
        person.writes("the last word")
        await notebook.until(lambda book: "the last word" in book.texts)
    return [text for text in notebook.texts if text != "the last word"]


@pytest.fixture
def ann(telegram: FakeTelegram) -> Person:
    return telegram.person("Ann")


@pytest.fixture
def group(telegram: FakeTelegram) -> Chat:
    return telegram.group("Ops")


def from_bot(telegram: FakeTelegram, chat: Chat, text: str = "I said so") -> Message:
    """A message of the bot's that stands in a chat."""
    return Message(chat, telegram.state.put_message(chat.state, telegram.state.me, {"text": text})["message_id"])


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("just talking", None),
        ("@porter_bot $ ls", "$ ls"),
        ("@Porter_Bot, $ ls", "$ ls"),
        ("please do it @porter_bot", "please do it @porter_bot"),
        ("\U0001f680\U0001f680 @porter_bot go", "\U0001f680\U0001f680 @porter_bot go"),
        ("mail a@porter_bot.test", None),
        ("@porter_bot2 hi", None),
        ("xx@porter_bot", None),
        ("/status@porter_bot", "/status@porter_bot"),
        ("/status@other_bot", None),
        ("/status@other_bot @porter_bot", None),
        ("/status", None),
    ],
)
async def test_in_groups_only_what_names_the_bot(
    telegram: FakeTelegram, ann: Person, group: Chat, text: str, taken: str | None
) -> None:
    ann.writes(text, to=group)
    assert await seen(telegram, ann) == ([taken] if taken else [])


async def test_who_opens_the_chat_is_shown_the_help(telegram: FakeTelegram, ann: Person) -> None:
    ann.writes("/start")
    ann.writes("/started?")
    assert await seen(telegram, ann) == ["/help", "/started?"]


async def test_without_the_setting_everything_but_what_is_for_another_bot(
    telegram: FakeTelegram, ann: Person, group: Chat
) -> None:
    ann.writes("just talking", to=group)
    ann.writes("/status@other_bot", to=group)
    assert await seen(telegram, ann, require_mention=False) == ["just talking"]


async def test_a_mention_by_name_counts_for_the_bot_alone(telegram: FakeTelegram, ann: Person, group: Chat) -> None:
    ann.writes("Porter", to=group, mention=telegram.state.me)
    ann.writes("Bob", to=group, mention=telegram.person("Bob").user)
    assert await seen(telegram, ann) == ["Porter"]


async def test_an_answer_to_the_bot_counts_also_without_text(telegram: FakeTelegram, ann: Person, group: Chat) -> None:
    mine = from_bot(telegram, group)
    photo = {"photo": [{"file_id": "p1", "file_unique_id": "p1", "width": 1, "height": 1}]}
    ann.writes("and this?", to=group, reply_to=mine)
    ann.writes(to=group, reply_to=mine, content=photo)
    ann.writes("not you", to=group, reply_to=ann.writes("hm", to=group))
    notebook = Notebook()
    async with connected(telegram, notebook):
        await notebook.until(lambda book: len(book.messages) == 2)
    first, second = notebook.messages
    assert (first.text, first.reply_to) == ("and this?", "I said so")
    assert (second.text, [one.ref for one in second.attachments]) == ("[photo]", ["p1"])


async def test_bots_and_messages_on_behalf_of_a_chat_get_no_service(
    telegram: FakeTelegram, ann: Person, group: Chat
) -> None:
    telegram.person("Robo", is_bot=True).writes("@porter_bot hi", to=group)
    group.channel_writes("@porter_bot hi")
    channel = {"message_id": 5, "date": 1, "chat": {"id": -5, "type": "channel", "title": "News"}, "text": "hi"}
    telegram.push_raw({"channel_post": channel})
    ann.writes(to=group, content={"new_chat_members": [telegram.state.me]})
    assert await seen(telegram, ann, require_mention=False) == []


async def test_topics_are_threads_and_only_topics(telegram: FakeTelegram, ann: Person) -> None:
    forum = telegram.group("Forum", forum=True)
    topic = forum.new_topic("Deploys")
    notebook = Notebook()
    async with connected(telegram, notebook):
        ann.writes("@porter_bot in general", to=forum)
        ann.writes("@porter_bot in a topic", to=topic)
        ann.writes("direct")
        await notebook.until(lambda book: len(book.messages) == 3)
    places = {message.text: message.conversation for message in notebook.messages}
    assert places["in general"].thread == ""
    assert places["in a topic"].thread == str(topic.topic)
    assert places["in a topic"].chat == places["in general"].chat == str(forum.id)
    assert places["direct"].kind is ConversationKind.DIRECT
    assert places["in general"].kind is ConversationKind.GROUP


async def test_a_topic_that_the_bot_opened_is_no_answer_to_it(telegram: FakeTelegram, ann: Person) -> None:
    forum = telegram.group("Forum", forum=True)
    topic = forum.new_topic("Deploys")
    opening = {"forum_topic_created": {"name": "Deploys", "icon_color": 1}}
    message = Message(topic, telegram.state.put_message(topic.state, telegram.state.me, opening)["message_id"])
    ann.writes("just talking", to=topic, reply_to=message)
    assert await seen(telegram, ann) == []


async def test_the_key_is_that_of_the_message_and_not_of_the_update(telegram: FakeTelegram, ann: Person) -> None:
    ann.writes("once")
    telegram.push_again(telegram.state.updates[0])
    assert await seen(telegram, ann) == ["once"]
