"""The methods of the Bot API that the fake knows, with the limits that the API documents.

Each takes the parameters as they arrived, decoded from their JSON, and returns the ``result``. getUpdates is in
:mod:`adapters.testing.telegram.server`, since it waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.testing.telegram.exceptions import ApiRefusal, bad_request
from adapters.testing.telegram.markup import parse, utf16
from adapters.testing.telegram.state import ChatState, Json, State

#: Longest text of a message and caption of a file after entities were parsed, in UTF-16 units.
MAX_TEXT = 4096
MAX_CAPTION = 1024

#: Longest text of an answer to a tap, in characters.
MAX_ANSWER = 200

#: Largest callback data of a button, in bytes.
MAX_DATA = 64

_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came with a call."""

    name: str
    content: bytes


Params = Mapping[str, Any]


def _writable(state: State, params: Params) -> ChatState:
    chat = state.chat(params.get("chat_id"))
    if chat.blocked:
        raise ApiRefusal(403, f"Forbidden: {chat.blocked}")
    return chat


def _thread(chat: ChatState, params: Params) -> int | None:
    if params.get("message_thread_id") is None:
        return None
    thread = int(params["message_thread_id"])
    if thread not in chat.topics:
        raise bad_request("message thread not found")
    return thread


def _markup(params: Params) -> Json | None:
    markup = params.get("reply_markup")
    if not markup:
        return None
    rows = markup.get("inline_keyboard", [])
    for button in (button for row in rows for button in row):
        data = button.get("callback_data", "")
        if not button.get("text") or not 1 <= len(data.encode()) <= MAX_DATA:
            raise bad_request("BUTTON_DATA_INVALID")
    return {"inline_keyboard": rows} if rows else None


def _text(params: Params, name: str, limit: int, too_long: str) -> tuple[str, list[Json]]:
    text, entities = parse(str(params.get(name) or ""), params.get("parse_mode"))
    if utf16(text) > limit:
        raise bad_request(too_long)
    return text, entities


def _reply(chat: ChatState, params: Params) -> Json:
    wanted = (params.get("reply_parameters") or {}).get("message_id")
    if wanted is None:
        return {}
    if int(wanted) not in chat.messages:
        raise bad_request("message to be replied not found")
    return {"reply_to_message": {**chat.messages[int(wanted)], "reply_to_message": None}}


def send_message(state: State, params: Params) -> Json:
    """A message of the bot."""
    chat = _writable(state, params)
    thread = _thread(chat, params)
    text, entities = _text(params, "text", MAX_TEXT, "message is too long")
    if not text.strip():
        raise bad_request("message text is empty")
    content: Json = {"text": text, "entities": entities, **_reply(chat, params)}
    if markup := _markup(params):
        content["reply_markup"] = markup
    return state.put_message(chat, state.me, content, thread)


def send_document(state: State, params: Params) -> Json:
    """A file of the bot."""
    chat = _writable(state, params)
    thread = _thread(chat, params)
    upload = params.get("document")
    if not isinstance(upload, Upload) or not upload.content:
        raise bad_request("file must be non-empty")
    caption, entities = _text(params, "caption", MAX_CAPTION, "message caption is too long")
    file_id = f"file{state.new_id()}"
    state.files[file_id] = upload.content
    document = {
        "file_id": file_id, "file_unique_id": file_id, "file_name": upload.name, "file_size": len(upload.content),
    }  # fmt: skip
    content: Json = {"document": document, "caption": caption, "caption_entities": entities, **_reply(chat, params)}
    if markup := _markup(params):
        content["reply_markup"] = markup
    return state.put_message(chat, state.me, content, thread)


def _own(state: State, params: Params) -> Json:
    chat = _writable(state, params)
    message = chat.messages.get(int(params.get("message_id") or 0))
    if message is None:
        raise bad_request("message to edit not found")
    if message["from"]["id"] != state.me["id"]:
        raise bad_request("message can't be edited")
    return message


def _changed(state: State, message: Json, new: Json) -> Json:
    if all(message.get(key) == value for key, value in new.items()):
        raise bad_request(
            "message is not modified: specified new message content and reply markup are exactly the same as a "
            "current content and reply markup of the message"
        )
    message.update(new)
    message["edit_date"] = int(time.time())
    state.tell()
    return message


def edit_text(state: State, params: Params) -> Json:
    """Replace the text of a message of the bot's."""
    message = _own(state, params)
    if "text" not in message:
        raise bad_request("there is no text in the message to edit")
    text, entities = _text(params, "text", MAX_TEXT, "message is too long")
    if not text.strip():
        raise bad_request("message text is empty")
    return _changed(state, message, {"text": text, "entities": entities, "reply_markup": _markup(params)})


def edit_caption(state: State, params: Params) -> Json:
    """Replace the caption of a file of the bot's."""
    message = _own(state, params)
    if "document" not in message:
        raise bad_request("there is no caption in the message to edit")
    caption, entities = _text(params, "caption", MAX_CAPTION, "message caption is too long")
    new: Json = {"caption": caption, "caption_entities": entities, "reply_markup": _markup(params)}
    return _changed(state, message, new)


def edit_markup(state: State, params: Params) -> Json:
    """Replace the buttons of a message of the bot's."""
    return _changed(state, _own(state, params), {"reply_markup": _markup(params)})


def answer_tap(state: State, params: Params) -> bool:
    """Answer a tap, once and in time."""
    tap = state.taps.get(str(params.get("callback_query_id")))
    text = str(params.get("text") or "")
    if len(text) > MAX_ANSWER:
        raise bad_request("MESSAGE_TOO_LONG")
    if tap is None or tap.expired or tap.answer is not None:
        raise bad_request(_TOO_OLD)
    tap.answer = {"text": text, "show_alert": bool(params.get("show_alert"))}
    state.tell()
    return True


def set_commands(state: State, params: Params) -> bool:
    """Replace the menu."""
    commands = list(params.get("commands") or [])
    if len(commands) > 100 or any(
        not 1 <= len(one["command"]) <= 32 or not 1 <= len(one["description"]) <= 256 for one in commands
    ):
        raise bad_request("BOT_COMMAND_INVALID")
    state.commands = commands
    state.tell()
    return True


def set_webhook(state: State, params: Params) -> bool:
    """Send updates to an address from now on."""
    url = str(params.get("url") or "")
    if url and not url.startswith("https://"):
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    state.webhook = {"url": url, "secret_token": str(params.get("secret_token") or "")}
    state.tell()
    return True


def _drop_webhook(state: State, params: Params) -> bool:
    return set_webhook(state, {**params, "url": ""})


def _get_file(state: State, params: Params) -> Json:
    file_id = str(params.get("file_id"))
    if file_id not in state.files:
        raise bad_request("invalid file_id")
    return {
        "file_id": file_id, "file_unique_id": file_id, "file_size": len(state.files[file_id]),
        "file_path": f"documents/{file_id}",
    }  # fmt: skip


def _chat_action(state: State, params: Params) -> bool:
    _thread(_writable(state, params), params)
    return True


METHODS: Mapping[str, Callable[[State, Params], Any]] = {
    "getme": lambda state, _: state.me,
    "sendmessage": send_message,
    "senddocument": send_document,
    "editmessagetext": edit_text,
    "editmessagecaption": edit_caption,
    "editmessagereplymarkup": edit_markup,
    "answercallbackquery": answer_tap,
    "sendchataction": _chat_action,
    "setmycommands": set_commands,
    "getmycommands": lambda state, _: state.commands,
    "setwebhook": set_webhook,
    "deletewebhook": _drop_webhook,
    "getwebhookinfo": lambda state, _: {
        "url": state.webhook["url"], "has_custom_certificate": False, "pending_update_count": len(state.updates),
    },
    "getfile": _get_file,
}  # fmt: skip


def decoded(raw: Mapping[str, Any]) -> Json:
    """Parameters as they came in a form, with those that hold JSON objects or lists read."""
    params: Json = {}
    for name, value in raw.items():
        if isinstance(value, str) and value[:1] in {"{", "["} and name not in {"text", "caption"}:
            try:
                params[name] = json.loads(value)
            except ValueError:
                raise bad_request(f"can't parse {name} JSON object") from None
        elif isinstance(value, str) and value in {"true", "True", "false", "False"} and name not in {"text", "caption"}:
            params[name] = value.lower() == "true"
        else:
            params[name] = value
    return params
