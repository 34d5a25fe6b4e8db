"""The house rules: imports point down and in no circle, families and tasks are named at home, no pickle is read."""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "weft"
FILES = sorted(SOURCE.rglob("*.py"))
RANKS = [
    {"errors", "registry", "toml"},
    {"config", "weights", "lazy", "pages", "plugins"},
    {"index"},
    {"text", "images", "blocks"},
    {"data", "models"},
    {"objectives", "checkpoints", "cost"},
    {"training", "generation", "analysis"},
    {"tasks"},
    {"exchange"},
    {"comparison", "report", "theory"},
    {"cli", "api"},
]
RANK = {package: rank for rank, packages in enumerate(RANKS) for package in packages}
OUTSIDE = {"__init__", "__main__"}


def package_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def for_types_only(tree):
    """Nodes under `if TYPE_CHECKING:`, which are not imported when the program runs."""
    guarded = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    return {id(inner) for node in guarded for inner in ast.walk(node)}


def imports_of(path, types=True):
    """The full names that a file imports from weft anywhere, also inside functions."""
    tree = tree_of(path)
    skipped = set() if types else for_types_only(tree)
    for node in ast.walk(tree):
        names = []
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.startswith("weft."))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path):
    here = package_of(path)
    if here in OUTSIDE:
        return
    for package in {name.split(".")[1] for name in imports_of(path)}:
        if package in RANK and package not in (here, "errors"):
            assert RANK[package] < RANK[here], f"{here} (rank {RANK[here]}) imports {package} (rank {RANK[package]})"


def test_every_package_has_a_rank():
    assert {package_of(path) for path in FILES} <= set(RANK) | OUTSIDE


# -- what there is none of --------------------------------------------------------------------


def circles():
    """Groups of modules that import each other in a circle, imports inside functions included."""
    modules = {
        ".".join(["weft", *p.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__"): p for p in FILES
    }

    def module_of(name):
        while name not in modules:
            name = name.rpartition(".")[0]
        return name

    graph = {m: {module_of(name) for name in imports_of(path, types=False)} - {m} for m, path in modules.items()}
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in index:
            visit(module)
    return found


@cache
def families():
    """Names of all classes that stand where a family does (its file or folder), and the words by which it is chosen."""
    from weft.models import ModelConfig

    homes = {config.__module__.split(".")[2] for config in ModelConfig.registry.values()}
    files = [
        path for path in FILES if path.relative_to(SOURCE).with_suffix("").parts[:2] in {("models", h) for h in homes}
    ]
    bodies = [node for path in files for node in tree_of(path).body]
    return {node.name for node in bodies if isinstance(node, ast.ClassDef)}, set(ModelConfig.registry)


def models_in(path):
    """Uses of names that a file imports from models/."""
    imported = {name.rpartition(".")[2] for name in imports_of(path) if name.startswith("weft.models.")}
    names = (node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name))
    return [name for name in names if name in imported]


def words_in(path):
    """String constants that are one word, without docstrings and the names in `__all__`."""
    tree = tree_of(path)
    listed = {
        id(inner)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for inner in ast.walk(node)
    }
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False)
    }
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documents | listed)
    return [node.value for node in nodes if isinstance(node.value, str)]


def outside(*homes):
    return [path for path in FILES if package_of(path) not in homes]


def class_names():
    found = defaultdict(list)
    for path in FILES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and path.name != "sklearn.py":
                found[node.name].append(str(path.relative_to(SOURCE)))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


TASKS = {"generate", "fill", "classify", "translate", "embed", "tag", "chat"}


def foreign_tasks(path):
    """Names of tasks in a file that is not in the folder of that task."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return [word for word in words_in(path) if word in TASKS and parts[:2] != ("tasks", word)]


def named(find, *homes):
    """What `find` gives for each file outside these packages, where it is anything."""
    found = {str(path.relative_to(SOURCE)): find(path) for path in outside(*homes)}
    return {path: names for path, names in found.items() if names}


def test_no_modules_import_each_other_in_a_circle():
    assert circles() == []


def test_no_family_class_is_used_outside_models():
    classes, _ = families()
    assert named(lambda path: [name for name in models_in(path) if name in classes], "models", "theory") == {}


def test_no_family_is_named_outside_models():
    _, words = families()
    assert named(lambda path: [w for w in words_in(path) if w in words], "models", "theory", "text", "blocks") == {}


def test_no_task_is_named_outside_its_folder_and_the_commands():
    assert named(foreign_tasks, "cli", "text", "theory") == {}


def test_no_two_classes_share_a_name():
    assert class_names() == {}


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_have_names_that_say_something(path):
    assert path.stem not in {"utils", "common", "helpers", "misc"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_pickle_no_sockets_no_prints(path):
    text = path.read_text(encoding="utf-8")
    forbidden = r"\bpickle\b|torch\.load\(|allow_pickle|\bsocket\b|urllib|requests\.|\beval\(|\bexec\("
    assert not re.search(forbidden, re.sub(r"\.eval\(", "", text))
    if package_of(path) != "cli":
        assert not re.search(r"^\s*print\(", text, re.MULTILINE)


def test_every_module_says_what_it_is():
    for path in FILES:
        assert ast.get_docstring(tree_of(path)), f"{path} has no docstring"


def test_python_is_new_enough():
    assert sys.version_info >= (3, 11)


def test_every_name_is_defined():
    """Ruff and mypy are told to be silent about names, because the letters of shapes ("b h t d") look like some."""
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    asked = [ruff, "check", "--isolated", "--select", "F821", "--output-format", "json", SOURCE]
    found = json.loads(subprocess.run(asked, capture_output=True, text=True, check=False).stdout)
    lines = {hit["filename"]: Path(hit["filename"]).read_text(encoding="utf-8").splitlines() for hit in found}
    undefined = [
        f"{hit['filename']}:{row}: {hit['message']}"
        for hit in found
        for row, column in [(hit["location"]["row"], hit["location"]["column"])]
        if lines[hit["filename"]][row - 1][: column - 1].count('"') % 2 == 0  # not within the letters of a shape
    ]
    assert not undefined, undefined
