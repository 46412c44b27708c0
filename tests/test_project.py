"""Promises of the project itself: the arrows between the rooms, the lock, what a start imports, the pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def write(root: Path, files: dict[str, str]) -> None:
    """Write modules, and the packages above them."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.parents:
            if folder == root:
                break
            (folder / "__init__.py").touch()


GOOD = {
    "gateway/daemon.py": "import adapters.base\nimport agent.loop\n",
    "agent/loop.py": "import agent.control.gate\n",
    "agent/control/gate.py": "import agent.control.sandbox.process\n",
    "agent/control/sandbox/process.py": "import shutil\nimport subprocess\n",
    "agent/tools/terminal.py": "import agent.control.gate\n",
    "adapters/base.py": "",
    "adapters/http/adapter.py": "import adapters.base\n",
}

#: Module, what it must not import, and how the contract begins that says so.
BROKEN = [
    ("adapters.http.adapter", "gateway.daemon", "The gateway stands"),
    ("adapters.base", "agent.events", "The gateway stands"),
    ("agent.history", "adapters.base", "The gateway stands"),
    ("agent.budget", "gateway.daemon", "The gateway stands"),
    ("agent.control.gate", "agent.prompt", "The control layer"),
    ("agent.control.sandbox.process", "agent.models.base", "The control layer"),
    ("agent.loop", "subprocess", "In agent only"),
    ("agent.tools.terminal", "shutil", "In agent only"),
]


class TestArrows:
    """The contracts are applied to small trees."""

    def lint(self, root: Path, files: dict[str, str]) -> dict[str, str]:
        """The report on each contract that does not hold, by its name."""
        write(root, files)
        (root / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
        command = [str(BIN / "lint-imports"), "--no-cache"]
        result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert "Contracts: " in result.stdout, result.stdout + result.stderr
        names = re.findall(r"^(.*) BROKEN", result.stdout, re.MULTILINE)
        return {name: result.stdout.rpartition(f"{name}\n---")[2] for name in names}

    def test_good_tree(self, tmp_path: Path) -> None:
        assert self.lint(tmp_path, GOOD) == {}

    def test_every_broken_arrow_is_found(self, tmp_path: Path) -> None:
        files = dict(GOOD) | {"agent/events.py": "", "agent/prompt.py": "", "agent/models/base.py": ""}
        for module, target, _ in BROKEN:
            name = module.replace(".", "/") + ".py"
            files[name] = files.get(name, "") + f"import {target}\n"
        reports = self.lint(tmp_path, files)
        for module, target, contract in BROKEN:
            report = next(text for name, text in reports.items() if name.startswith(contract))
            assert f"{module} -> {target} " in report

    def test_this_tree(self) -> None:
        result = subprocess.run([BIN / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout


CALLS = [
    "import subprocess",
    "import shutil",
    "import os\nos.system('x')",
    "from os import popen\npopen('x')",
    "import os\nos.execv('x', [])",
    "import os\nos.fork()",
    "import asyncio\nasyncio.create_subprocess_exec('x')",
    "import asyncio\nasyncio.create_subprocess_shell('x')",
    "import multiprocessing",
    "import pickle",
]


def test_only_the_control_layer_starts_processes(tmp_path: Path) -> None:
    """The linter says so of every other file."""
    places = ("agent", "agent/tools", "adapters", "gateway", "agent/control", "agent/control/sandbox")
    files = {f"{place}/call_{number}.py": text for place in places for number, text in enumerate(CALLS)}
    write(tmp_path, files)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    command = [str(BIN / "ruff"), "check", "--select", "TID251", "--no-cache", "--output-format", "json", "."]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = {str(Path(entry["filename"]).relative_to(tmp_path)) for entry in json.loads(result.stdout)}
    assert found == {name for name in files if not name.startswith("agent/control/")}


class TestLock:
    def test_addresses(self) -> None:
        """Whoever installs from the lock reaches the public index only."""
        addresses = set(re.findall(r"https?://[^/\"]+", (ROOT / "uv.lock").read_text()))
        assert addresses == {"https://pypi.org", "https://files.pythonhosted.org"}

    def test_every_file_has_a_hash(self) -> None:
        lock = tomllib.loads((ROOT / "uv.lock").read_text())
        files = [file for package in lock["package"] for file in [*package.get("wheels", []), package.get("sdist")]]
        assert len(files) > 50
        assert all(file["hash"].startswith("sha256:") for file in files if file)


#: Heavy modules that a start with the offline model and HTTP alone must not bring in.
LATER = (
    "telegram",
    "slack_sdk",
    "slack_bolt",
    "openai",
    "anthropic",
    "mcp",
    "httpx",
    "httpx2",
    "jinja2",
    "jsonschema",
    "pydantic",
    "numpy",
    "pytest",
    "hypothesis",
)


def test_what_a_start_imports() -> None:
    program = f"import sys, gateway.cli.run; print([name for name in {LATER!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


class TestFiles:
    @pytest.mark.parametrize(
        "page", sorted((ROOT / "docs").glob("*.md")) + sorted(ROOT.glob("*.md")), ids=lambda p: p.name
    )
    def test_links_lead_somewhere(self, page: Path) -> None:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if target != "docs/images/page.png":
                assert (page.parent / target).exists(), target

    def test_modules_stay_small(self) -> None:
        long = {
            str(path.relative_to(ROOT)): lines
            for package in ("gateway", "agent", "adapters", "tests", "bench")
            for path in (ROOT / package).rglob("*.py")
            if (lines := path.read_text().count("\n")) > 500
        }
        assert long == {}
