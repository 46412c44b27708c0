from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from gateway.store import asks, migrations
from tests.gateway.store.conftest import NOW
from tests.gateway.store.test_asks import ask

ENDS = ("approved", "denied", "timed_out", "cancelled", "undeliverable", "answered")


class AskMachine(RuleBasedStateMachine):
    """Whatever comes in whatever order, undone units included: a request settles once, and never late with consent."""

    requests = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.conn = sqlite3.connect(":memory:", isolation_level=None)
        migrations.migrate(self.conn, Path(":memory:"), migrations.load())
        self.model: dict[str, tuple[str, str | None]] = {}
        self.voters: dict[str, set[str]] = {}
        self.passed_s = 0.0

    def teardown(self) -> None:
        self.conn.close()

    @property
    def late(self) -> bool:
        return self.passed_s > 300

    @rule(target=requests)
    def open(self) -> str:
        id = f"a{len(self.model)}"
        asks.open_ask(self.conn, ask(id, code=asks.fresh_code(self.conn, "http:owner/main")))
        self.model[id] = ("pending", None)
        self.voters[id] = set()
        return id

    @rule(seconds=st.sampled_from((1.0, 100.0, 250.0)))
    def time_passes(self, seconds: float) -> None:
        self.passed_s += seconds

    @rule(id=requests, state=st.sampled_from(ENDS), by=st.sampled_from("pqr"), undone=st.booleans())
    def settle(self, id: str, state: str, by: str, undone: bool) -> None:
        self.conn.execute("BEGIN IMMEDIATE")
        now = NOW + timedelta(seconds=self.passed_s)
        won = asks.settle(self.conn, id, state=state, choice=None, by=by, reason="", now=now)
        self.conn.execute("ROLLBACK" if undone else "COMMIT")
        may = self.model[id][0] == "pending" and not (self.late and state in asks.CONSENTING)
        assert won == may
        if won and not undone:
            self.model[id] = (state, by)

    @rule(id=requests, by=st.sampled_from("pqr"))
    def vote(self, id: str, by: str) -> None:
        if self.model[id][0] == "pending" and not self.late:
            self.voters[id].add(by)
        now = NOW + timedelta(seconds=self.passed_s)
        assert asks.vote(self.conn, id, by, now) == len(self.voters[id])

    @invariant()
    def records_are_as_settled_first(self) -> None:
        stored = {id: asks.get(self.conn, id) for id in self.model}
        assert {id: (row.state, row.settled_by) for id, row in stored.items() if row} == self.model
        still_open = [row.id for row in asks.all_open(self.conn)]
        assert sorted(still_open) == sorted(id for id, (state, _) in self.model.items() if state == "pending")


TestAskMachine = AskMachine.TestCase
TestAskMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
