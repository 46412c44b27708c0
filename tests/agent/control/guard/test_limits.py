"""Bounds on work: what is over one asks, and a hardline command behind it is still refused."""

from __future__ import annotations

import threading

import pytest

from agent.control.guard import Guard, Verdict, guard
from agent.control.guard.evaluate import MAX_COMMANDS, Evaluator
from agent.control.guard.exceptions import OverLimit
from agent.control.guard.judge import Judge
from agent.control.guard.state import State
from tests.agent.control.guard import corpus

OVER = {
    "brackets": "(" * 20_000,
    "substitutions": "$(" * 5_000 + "ls" + ")" * 5_000,
    "braces": "echo " + "{a,b}" * 15,
    "wrappers": "sudo " * 3_000 + "ls",
    "evals": "eval " * 3_000 + "ls",
    "doubling": "a=x;" + "a=$a$a;" * 30 + "echo $a",
    "functions": "".join(f"f{i}(){{ f{i + 1}; f{i + 1}; }};" for i in range(12)) + "f12(){ ls; };f0",
    "loops": "for a in {1..60}; do for b in {1..60}; do ls; done; done",
    "compound": "if true; then " * 300 + "ls" + "; fi" * 300,
    "quotes": "echo " + '"a' * 10_001,
    "length": "echo " + "a" * 40_000,
}


@pytest.mark.parametrize("name", sorted(OVER))
def test_over_a_bound_asks(name: str) -> None:
    judgement = corpus.guard().judge(OVER[name])
    assert judgement.verdict is Verdict.APPROVE
    assert judgement.rules[0] == "unreadable.syntax"


@pytest.mark.parametrize("count", [8_000, 6_000, 4_900, 60])
def test_no_bound_fails_open(count: int) -> None:
    judgement = corpus.guard().judge("true;" * count + "rm -rf /")
    assert judgement.verdict is Verdict.REFUSE
    assert judgement.rules[0] == "hardline.delete"


@pytest.mark.parametrize(
    "tail",
    [
        "sudo mkfs.ext4 /dev/sdb1",
        "dd if=a of=/dev/sda",
        "reboot",
        "sudo shutdown -h now",
        "systemctl poweroff",
        ":(){ :|:& };:",
        "kill -9 -1",
        "chmod -R 777 /",
        "rm -rf ~",
        "rm -fr 'etc' /etc",
        "cat a > /dev/sda",
        "echo b > /proc/sysrq-trigger",
        "gateway stop",
        "systemctl --user stop gateway",
        "rm -f ~/.gateway/audit.log",
        "pkill gateway",
        "find / -delete",
        "r\\m -rf /",
        "init 0",
    ],
)
def test_the_net_below_the_parser(tail: str) -> None:
    assert corpus.verdict(f"ls (; {tail}") is Verdict.REFUSE
    assert corpus.verdict("true;" * 8_000 + tail) is Verdict.REFUSE


@pytest.mark.parametrize(
    "text",
    [
        "echo 'rm -rf /",
        'echo "reboot',
        "grep 'kill -9 -1",
        "git commit -m 'mkfs.ext4 /dev/sda",
        "ls (; rm -rf build",
        "ls (; shutdown --help",
        "ls (; rm -rf /tmp/x",
    ],
)
def test_the_net_spares_words_that_are_no_command(text: str) -> None:
    assert corpus.verdict(text) is Verdict.APPROVE


def test_work_is_counted() -> None:
    evaluator = Evaluator(Judge(corpus.assume()))
    with pytest.raises(OverLimit):
        evaluator.run("true;" * (MAX_COMMANDS + 1), State.initial(corpus.assume()))
    assert evaluator.commands == MAX_COMMANDS + 1


def test_rounds_of_loops_are_counted() -> None:
    evaluator = Evaluator(Judge(corpus.assume()))
    with pytest.raises(OverLimit):
        evaluator.run(OVER["loops"], State.initial(corpus.assume()))
    assert evaluator.commands < 1_000


def test_judgements_are_remembered_by_exact_text() -> None:
    judge = Guard(corpus.assume())
    first = judge.judge("ls -la")
    assert judge.judge("ls -la") is first
    for number in range(guard.CACHED):
        judge.judge(f"echo {number}")
    again = judge.judge("ls -la")
    assert again is not first
    assert again == first


def test_long_commands_are_not_kept() -> None:
    judge = Guard(corpus.assume())
    text = "echo " + "a" * 40_000
    assert judge.judge(text) is not judge.judge(text)


def test_threads_may_share_one() -> None:
    judge = Guard(corpus.assume())
    commands = [row.command for row in corpus.rows()[::7]]
    expected = [corpus.verdict(one) for one in commands]
    found: list[list[Verdict]] = []

    def work() -> None:
        found.append([judge.judge(one).verdict for one in commands])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
