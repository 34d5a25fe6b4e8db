"""Plugins: kinds from a file or a package are found by every verb, and a run says which plugin it needs."""

import json
import logging
import os
import shutil
import sys

import pytest

from fixtures.commands import run_weft, run_weft_process
from fixtures.plugins import restore_registries
from weft import plugins
from weft.blocks import AttentionConfig
from weft.errors import ConfigError, DataError
from weft.tasks.data_check import CheckRequest, find_check
from weft.tasks.names import task_names
from weft.tasks.task import find_task

FIRST_KEYS = """
from weft.blocks.attention import SoftmaxConfig

class FirstKeysConfig(SoftmaxConfig, kind="first-keys"):
    \"\"\"Softmax attention under a name of its own.\"\"\"
"""
TEXT = "The cat sat on the mat, and the dog sat on the log. " * 60
SMALL = [
    "--steps",
    "2",
    "--threads",
    "1",
    "--tokenizer",
    "characters",
    "--set",
    "model.width=16",
    "--set",
    "model.depth=1",
]
SMALL += ["--set", "model.attention.heads=2", "--set", "model.max_length=16", "--set", "training.batch=2"]
KIND = ["--set", "model.attention.kind=first-keys"]


@pytest.fixture
def forget():
    """Plugins of a test are gone after it."""
    yield
    for name in [name for name in sys.modules if name.startswith(plugins.MODULES)]:
        del sys.modules[name]
    plugins.LOADED.clear()
    os.environ.pop(plugins.VARIABLE, None)
    AttentionConfig.registry.pop("first-keys", None)


@pytest.fixture
def desk(tmp_path, forget):
    (tmp_path / "first_keys.py").write_text(FIRST_KEYS)
    (tmp_path / "book.txt").write_text(TEXT)
    return tmp_path


def test_a_run_of_a_plugin_needs_it_ever_after(desk):
    """In processes of their own: trained, used, refused without, resumed."""
    words = ["train", "book.txt", "--out", "run", *SMALL, *KIND]
    refused = run_weft_process(*words, cwd=desk, check=False)
    assert refused.returncode == 2 and "unknown attention kind 'first-keys'" in refused.stderr
    run_weft_process("--plugin", "first_keys.py", *words, cwd=desk)
    recorded = json.loads((desk / "run" / "config.json").read_text())["plugins"]
    assert [(one["name"], one["file"], len(one["sha256"])) for one in recorded] == [("first_keys", "first_keys.py", 64)]
    for verb in (
        ["generate", "run", "The"],
        ["evaluate", "run"],
        ["inspect", "run"],
        ["resume", "run", "--steps", "1"],
    ):
        without = run_weft_process(*verb, cwd=desk, check=False)
        assert without.returncode == 1 and "needs the plugin first_keys.py" in without.stderr, verb
        assert "add  --plugin first_keys.py" in without.stderr
        run_weft_process(*verb, "--plugin=first_keys.py", cwd=desk)


def test_a_run_without_kinds_of_a_plugin_names_none(desk):
    run_weft("train", "book.txt", "--out", "run", *SMALL, "--plugin", "first_keys.py", cwd=desk)
    assert "plugins" not in json.loads((desk / "run" / "config.json").read_text())


def test_processes_that_are_started_load_the_same_files(desk):
    plugins.load_plugin(desk / "first_keys.py")
    assert os.environ[plugins.VARIABLE] == str((desk / "first_keys.py").resolve())
    told = run_weft_process("train", "book.txt", "--out", "run", *SMALL, *KIND, cwd=desk)
    assert told.returncode == 0


def test_a_plugin_that_changed_is_told(desk, caplog):
    plugins.load_plugin(desk / "first_keys.py")
    recorded = plugins.plugins_of({"model": {"attention": [{"kind": "first-keys"}]}})
    plugins.check_plugins(recorded, "run")
    with caplog.at_level(logging.WARNING):
        plugins.check_plugins([recorded[0] | {"sha256": "0" * 64}], "run")
    assert "first_keys.py has changed since run was written" in caplog.text
    assert plugins.plugins_of({"model": {"attention": {"kind": "softmax"}}}) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 / 0", "fails when it is imported: ZeroDivisionError"),
        ("import no_such_library", "fails when it is imported: ModuleNotFoundError"),
        (FIRST_KEYS + "    heads: int = 0 +", "fails when it is imported: SyntaxError"),
    ],
)
def test_a_plugin_that_fails_says_why(desk, content, message):
    (desk / "bad.py").write_text(content)
    told = run_weft("tokens", "a text", "--plugin", "bad.py", cwd=desk, check=False)
    assert told.returncode == 2 and message in told.stderr and len(told.stderr.splitlines()) <= 3
    assert "bad" not in plugins.LOADED


def test_what_is_no_plugin_is_refused(desk):
    for path in ("missing.py", "book.txt", "."):
        with pytest.raises(ConfigError, match="expected a Python file"):
            plugins.load_plugin(desk / path)
    plugins.load_plugin(desk / "first_keys.py")
    (desk / "other").mkdir()
    shutil.copy(desk / "first_keys.py", desk / "other")
    with pytest.raises(ConfigError, match="two plugins are called first_keys"):
        plugins.load_plugin(desk / "other" / "first_keys.py")


@pytest.mark.parametrize("recorded", ["x", [1], [{"file": "x.py"}], {"name": "x"}])
def test_a_damaged_list_is_refused(recorded):
    with pytest.raises(DataError, match="expected a list of plugins"):
        plugins.check_plugins(recorded, "run")


def test_no_code_of_a_run_is_run(desk):
    """What stands in a run directory names a plugin; it is never imported from there."""
    run_weft_process("--plugin", "first_keys.py", "train", "book.txt", "--out", "run", *SMALL, *KIND, cwd=desk)
    (desk / "run" / "first_keys.py").write_text("raise SystemExit('code of a run was run')")
    told = run_weft_process("inspect", "run", cwd=desk, check=False)
    assert told.returncode == 1 and "needs the plugin" in told.stderr


def test_installed_packages_are_found(desk, monkeypatch, caplog):
    """A real package with an entry point, as pip installs it."""
    site = desk / "site"
    info = site / "weft_first_keys-1.2.dist-info"
    info.mkdir(parents=True)
    (site / "installed_keys.py").write_text(FIRST_KEYS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-first-keys\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[weft.plugins]\nkeys = installed_keys\nbroken = no_such_module\n")
    monkeypatch.syspath_prepend(str(site))
    with caplog.at_level(logging.WARNING):
        plugins.load_installed()
    assert plugins.LOADED["keys"].version == "1.2" and "first-keys" in AttentionConfig.registry
    assert "the plugin broken fails" in caplog.text
    assert plugins.plugins_of({"kind": "first-keys"})[0]["name"] == "keys"
    sys.modules.pop("installed_keys")


def test_a_task_of_a_plugin_is_found_by_its_name(desk):
    """It is registered by being defined, gone with its registry, and a run of it names the plugin."""
    body = "from weft.tasks.generate.task import Generate\n\nclass Retell(Generate):\n    name = 'retell'\n"
    (desk / "retell.py").write_text(body)
    with restore_registries():
        plugins.load_plugin(desk / "retell.py")
        assert task_names()[-1] == "retell" and type(find_task("retell")).__name__ == "Retell"
        assert plugins.plugins_of({"task": "retell"})[0]["name"] == "retell"
        (desk / "again.py").write_text(body)
        with pytest.raises(ConfigError, match="two tasks are called retell"):
            plugins.load_plugin(desk / "again.py")
    assert "retell" not in task_names()


RETELL = """
from weft.tasks.data_check import DataCheck
from weft.tasks.findings import Findings, count_rows
from weft.tasks.generate.task import Generate

def count(asked):
    parts = {"train": {"stories": len(asked.train)}}
    rows = count_rows(list(parts.values()), {"stories": "stories"})
    return Findings(parts, {"column": asked.columns.get("text")}, ["All of it was looked at."], rows)

STORIES = DataCheck(
    "stories", lambda paths, columns: paths[0].endswith(".story"), count, columns=("text",), options=(), turn=0
)

class Retell(Generate):
    name = "retell"
    data_checks = (STORIES,)
"""


def test_the_check_of_a_plugins_task_is_found(desk):
    """By the name of its task and by what it recognises; it has the options that it says, and those alone."""
    (desk / "retell.py").write_text(RETELL)
    (desk / "long.story").write_text(TEXT)
    plugin = ("--plugin", "retell.py")
    assert "Validation" in run_weft("check", "long.story", cwd=desk).stdout
    with restore_registries():
        told = run_weft("check", "long.story", *plugin, cwd=desk).stdout
        assert "All of it was looked at." in told and "Nothing speaks against" in told
        assert [line.split() for line in told.splitlines() if "stories" in line] == [["stories", "1"]]
        found = json.loads(
            run_weft("check", "retell", "book.txt", "a.txt", "--text", "x", "--json", *plugin, cwd=desk).stdout
        )
        assert found["train"] == {"stories": 2} and found["test"] is None and found["column"] == "x"
        assert "Validation" in run_weft("check", "book.txt", *plugin, cwd=desk).stdout, "others stay what they are"
        for option, value in (("--label", "x"), ("--tokenizer", "bpe"), ("--test", "b.story")):
            refused = run_weft("check", "long.story", option, value, *plugin, cwd=desk, check=False)
            assert refused.returncode == 2 and "with stories" in refused.stderr
    assert find_check(None, ["long.story"], ()).things == "a text"


def test_a_task_without_a_check_is_refused_by_name(desk):
    (desk / "retell.py").write_text(RETELL.replace("data_checks = (STORIES,)", ""))
    with restore_registries():
        refused = run_weft("check", "retell", "book.txt", "--plugin", "retell.py", cwd=desk, check=False)
        assert refused.returncode == 1 and "the task 'retell' does not exist yet" in refused.stderr
        assert "translate" in refused.stderr and "embed" not in refused.stderr


def test_options_are_refused_by_what_they_are_given_with():
    chosen = find_check("tag", ["a.conll"], ())
    chosen.check_options(CheckRequest(["a.conll"], test=["b.conll"], columns={"label": "4"}))
    with pytest.raises(ConfigError, match="--pair with tagged sentences"):
        chosen.check_options(CheckRequest(["a.conll"], columns={"pair": "4"}))


def test_a_plugin_that_changed_is_said_by_the_command(desk):
    run_weft("train", "book.txt", "--out", "run", *SMALL, *KIND, "--plugin", "first_keys.py", cwd=desk)
    plugins.LOADED.clear()
    (desk / "first_keys.py").write_text(FIRST_KEYS + "\nCHANGED = True\n")
    told = run_weft("evaluate", "run", "--plugin", "first_keys.py", cwd=desk)
    assert told.stderr.count("Warning: the plugin first_keys.py has changed since") == 1
    assert "Warning" not in run_weft("tokens", "a text", "--plugin", "first_keys.py", cwd=desk).stderr


def test_commands_to_try_name_the_plugins_that_they_need(desk):
    result = run_weft("train", "book.txt", "--out", "run", *SMALL, *KIND, "--plugin", "first_keys.py", cwd=desk)
    tried = [line for line in result.stderr.splitlines() if "weft generate run" in line or "weft export run" in line]
    assert tried and all("--plugin first_keys.py" in line for line in tried)
    assert "weft resume run --plugin first_keys.py" in (desk / "run" / "README.md").read_text()
    plugins.LOADED.clear()
    os.environ.pop(plugins.VARIABLE, None)
    told = run_weft("retell", "run", "a text", cwd=desk, check=False)
    assert told.returncode == 2 and "a plugin needs --plugin FILE.py" in told.stderr
