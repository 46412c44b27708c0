from __future__ import annotations

import dataclasses
import sqlite3
from datetime import timedelta

import pytest

from gateway.store import grants
from tests.gateway.store.conftest import NOW

HERE, BOOT, ME = "http:owner/main", "boot 1", "http:owner"
HOUR = timedelta(hours=1)


def grant(id: str, *, session: str = HERE, uses_left: int | None = None) -> grants.GrantRow:
    return grants.GrantRow(
        id=id,
        session=session,
        boot=BOOT,
        principal=ME,
        rule="fs.rm",
        shape="rm -rf",
        paths=("/workspace/build",),
        given_by="http:boss",
        at=NOW,
        expires=NOW + 24 * HOUR,
        uses_left=uses_left,
    )


def live(conn: sqlite3.Connection, **changes: str) -> list[str]:
    wanted = {"session": HERE, "boot": BOOT, "principal": ME} | changes
    return [row.id for row in grants.of_session(conn, wanted["session"], wanted["boot"], wanted["principal"], NOW)]


def test_a_grant_comes_back_as_it_was(conn: sqlite3.Connection) -> None:
    grants.add(conn, grant("g"))
    assert grants.of_session(conn, HERE, BOOT, ME, NOW) == [grant("g")]
    assert grants.get(conn, "g") == grant("g")
    assert grants.get(conn, "none") is None


def test_a_grant_counts_in_its_session_run_and_for_its_principal(conn: sqlite3.Connection) -> None:
    grants.add(conn, grant("g"))
    assert live(conn, session="other") == []
    assert live(conn, boot="boot 2") == []
    assert live(conn, principal="http:eve") == []
    assert [row.id for row in grants.all_live(conn, BOOT, NOW)] == ["g"]
    assert grants.all_live(conn, "boot 2", NOW) == []


def test_a_grant_expires(conn: sqlite3.Connection) -> None:
    grants.add(conn, grant("g"))
    assert grants.of_session(conn, HERE, BOOT, ME, NOW + 24 * HOUR) == []
    assert not grants.spend(conn, ["g"], NOW + 24 * HOUR)
    assert grants.spend(conn, ["g"], NOW + 23 * HOUR)


def test_uses_are_spent_all_or_none(conn: sqlite3.Connection) -> None:
    grants.add(conn, grant("two", uses_left=2))
    grants.add(conn, grant("one", uses_left=1))
    grants.add(conn, grant("any"))
    assert grants.spend(conn, ["two", "one", "any", "one"], NOW)
    assert not grants.spend(conn, ["two", "one"], NOW)
    assert not grants.spend(conn, ["two", "none"], NOW)
    left = grants.get(conn, "two")
    assert left is not None
    assert left.uses_left == 1
    assert live(conn) == ["any", "two"]
    assert grants.spend(conn, [], NOW)


def test_a_revoked_grant_is_over(conn: sqlite3.Connection) -> None:
    grants.add(conn, grant("g"))
    assert grants.revoke(conn, "g", NOW)
    assert not grants.revoke(conn, "g", NOW)
    assert not grants.revoke(conn, "none", NOW)
    assert live(conn) == []
    assert not grants.spend(conn, ["g"], NOW)
    assert grants.get(conn, "g") == dataclasses.replace(grant("g"), revoked_at=NOW)


def test_the_end_of_a_session_ends_its_grants(conn: sqlite3.Connection) -> None:
    for id in ("a", "b"):
        grants.add(conn, grant(id))
    grants.add(conn, grant("c", session="other"))
    assert grants.end_session(conn, HERE, NOW) == 2
    assert grants.end_session(conn, HERE, NOW) == 0
    assert [row.id for row in grants.all_live(conn, BOOT, NOW)] == ["c"]


def test_ids_are_unique(conn: sqlite3.Connection) -> None:
    grants.add(conn, grant("g"))
    with pytest.raises(sqlite3.IntegrityError):
        grants.add(conn, grant("g"))
