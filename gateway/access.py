"""Who is who: from a platform's sender to a principal with a role, and to the session that a message belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from adapters.base import Conversation, ConversationKind, Sender
from agent.control.ports import Role


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as the gateway knows them."""

    principal: str
    role: Role


@dataclass(frozen=True, slots=True)
class Address:
    """The session that a conversation leads to.

    Attributes:
        key: unique in the store.
        name: as shown to its owner; equal to the key for chats.
        owner: principal of a direct or named session, None in groups.
        scope: decides workspace, memory, grants and search.
    """

    key: str
    name: str
    owner: str | None
    scope: str


class Access:
    """The allowlist of a home without a policy file: stable platform ids with their roles.

    Args:
        people: roles by platform and by the platform's stable user id.
        everyone: role of anybody else by platform, where the owner let everybody in.
    """

    def __init__(self, people: Mapping[str, Mapping[str, Role]], everyone: Mapping[str, Role] | None = None) -> None:
        self._people = people
        self._everyone = everyone or {}

    def identify(self, sender: Sender) -> Identity | None:
        """The person behind ``sender``; None for strangers, bots and messages on behalf of a chat."""
        if sender.is_bot or not sender.id:
            return None
        role = self._people.get(sender.platform, {}).get(sender.id, self._everyone.get(sender.platform))
        if role is None:
            return None
        return Identity(f"{sender.platform}:{sender.id}", role)

    def role_of(self, principal: str) -> Role | None:
        """The role that a principal has now, whatever they had when they wrote; None for one who lost access."""
        platform, _, id_ = principal.partition(":")
        who = self.identify(Sender(platform, id_))
        return None if who is None else who.role


def address_of(conversation: Conversation, identity: Identity) -> Address:
    """The session of a message: named ones per person, direct chats per person, groups per thread."""
    person = f"person:{identity.principal}"
    if conversation.kind is ConversationKind.NAMED:
        return Address(named_key(identity.principal, conversation.chat), conversation.chat, identity.principal, person)
    key = f"{conversation.platform}:{conversation.chat}"
    if conversation.thread:
        key = f"{key}:{conversation.thread}"
    if conversation.kind is ConversationKind.DIRECT:
        return Address(key, key, identity.principal, person)
    return Address(key, key, None, f"chat:{conversation.platform}:{conversation.chat}")


def named_key(principal: str, name: str) -> str:
    """Key of a session that its owner has named; the name itself may hold any of its characters."""
    return f"{quote(principal, safe=':')}/{name}"
