"""`weft doctor`: what this computer has, how fast it is, and whether something is missing."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from weft import __version__

NEEDED = {  # where Weft runs from a folder and is not installed, pip does not know what it needs
    "torch": "2.6",
    "numpy": "1.26",
    "tokenizers": "0.20",
    "safetensors": "0.4.5",
    "typer": "0.15",
    "rich": "13.7",
    "jaxtyping": "0.2.36",
}
INNER_EXTRAS = ("all", "dev", "peers")  # for those who work on Weft
LITTLE_DISK = 10**9
LITTLE_MEMORY = 10**9
SIZE = 512
SECONDS = 0.2  # for each number type
REQUIREMENT = re.compile(r"([\w.-]+)[^;>]*(?:>=\s*([\d.]+))?[^;]*(?:;.*extra\s*==\s*['\"]([\w-]+)['\"])?")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Look at this computer: versions, devices, speed, memory, disk, and what is missing.

    Example:  weft doctor
    """
    found = examine()
    if as_json:
        typer.echo(json.dumps(found))
    else:
        from rich.console import Console

        console = Console(highlight=False, markup=False, emoji=False)
        for line in describe(found):
            console.print(line)
    if found["problems"]:
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    """Everything that was found; `problems` is empty when nothing is missing."""
    versions, problems = _versions()
    found: dict[str, Any] = {
        "versions": {"weft": __version__, "python": platform.python_version(), **versions},
        "extras": _extras(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "memory_available": available_memory(),
        "disk_free": shutil.disk_usage(".").free,
    }
    if versions["torch"] is not None and versions["numpy"] is not None:
        found |= _torch_facts()
    obstacle = _writing_obstacle(Path("runs"))
    found["runs_writable"] = obstacle is None
    if obstacle:
        problems.append(obstacle)
    if found["disk_free"] < LITTLE_DISK:
        problems.append("less than 1 GB of disk space is free here: free some, or train with --out on another disk")
    memory = found["memory_available"]
    if memory is not None and memory < LITTLE_MEMORY:
        problems.append("less than 1 GB of memory is available: close other programs")
    return {"ok": not problems, "problems": problems, **found}


# -- what is installed ------------------------------------------------------------------------


def _versions() -> tuple[dict[str, str | None], list[str]]:
    """The version of each package that is needed, None if it is missing; and what to do about it."""
    versions: dict[str, str | None] = {}
    problems = []
    needed = {name: least for name, least, extra in _requirements() if not extra} or NEEDED
    for name in {**NEEDED, **needed}:
        least = needed.get(name, NEEDED.get(name, ""))
        advice = f"python -m pip install '{name}>={least}'"
        try:
            import_module(name.replace("-", "_"))
        except ImportError as error:
            versions[name] = None
            gone = isinstance(error, ModuleNotFoundError) and error.name == name
            problems.append(f"{name} is {'not installed' if gone else f'broken ({error})'}: {advice}")
            continue
        except Exception as error:  # a damaged installation may raise anything
            versions[name] = None
            problems.append(f"{name} is broken ({error}): {advice}")
            continue
        versions[name] = _version(name)
        if _numbers(versions[name]) < _numbers(least):
            problems.append(f"{name} {versions[name]} is too old: {advice}")
    return versions, [" ".join(problem.split()) for problem in problems]


def _requirements() -> Iterator[tuple[str, str, str]]:
    """(package, least version, extra) as Weft was installed with; nothing if it was not installed."""
    try:
        stated = metadata.requires("weft") or []
    except metadata.PackageNotFoundError:
        return
    for line in stated:
        if match := REQUIREMENT.match(line):
            yield match[1], match[2] or "0", match[3] or ""


def _extras() -> dict[str, bool]:
    """Which optional parts are installed whole; their packages are not imported."""
    extras: dict[str, bool] = {}
    for name, _, extra in _requirements():
        if extra and extra not in INNER_EXTRAS:
            extras[extra] = extras.get(extra, True) and _version(name) != ""
    return extras


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str | None) -> tuple[int, ...]:
    """2.13.0+cpu → (2, 13, 0); what has no version is taken as new enough."""
    if not version:
        return (10**9,)
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


# -- what the machine does --------------------------------------------------------------------


def _torch_facts() -> dict[str, Any]:
    import torch

    cuda = torch.cuda.is_available()
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []
    float32, bf16 = matrix_speed(torch.float32), matrix_speed(torch.bfloat16)
    return {
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": devices,
        "mps": torch.backends.mps.is_available(),
        "speed_float32": float32,
        "speed_bf16": bf16,
        "precision": "float32",
    }


def matrix_speed(kind: Any) -> float:
    """Operations a second of a matrix product on the processor: the best of those that fit into a moment."""
    import torch

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(SIZE, SIZE, generator=generator).to(kind) for _ in range(2))
    ends = time.perf_counter() + SECONDS
    best = float("inf")
    torch.mm(a[:64], b)  # the first use prepares things
    while best == float("inf") or time.perf_counter() < ends:
        began = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - began)
    return 2 * SIZE**3 / max(best, 1e-9)


def available_memory() -> int | None:
    """Bytes that a program can still take; what the machine has in all where it does not say; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None
    group = Path("/sys/fs/cgroup")  # a container may be allowed less
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or "max": no limit
        return available
    return max(0, min(available, limit - used))


def _writing_obstacle(runs: Path) -> str | None:
    """Why no run can be written here, if so. Tried, not asked: rights alone do not tell."""
    if runs.exists() and not runs.is_dir():
        return f"{runs} is a file, not a folder: rename it, or train with --out"
    folder = runs if runs.exists() else Path(".")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        where = "runs/" if runs.exists() else "the current folder"
        return f"{where} cannot be written to ({error.strerror}): go to another folder, or train with --out"


# -- in words ---------------------------------------------------------------------------------


def describe(found: dict[str, Any]) -> Iterator[str]:
    """A line for each thing, and the verdict last."""
    yield "Versions: " + ", ".join(f"{name} {version or 'missing'}" for name, version in found["versions"].items())
    if found["extras"]:
        yield "Extras: " + ", ".join(f"{name} {'yes' if there else 'no'}" for name, there in found["extras"].items())
    yield f"System: {found['system']}"
    used = f", {found['threads']} used by torch, {found['cpu_capability']}" if "threads" in found else ""
    yield f"Processors: {found['processors']}{used}"
    if "cuda" in found:
        devices = ["cpu", *(f"cuda ({name})" for name in found["cuda"]), *(["mps"] if found["mps"] else [])]
        yield "Devices: " + ", ".join(devices)
        yield f"Matrix products: {found['speed_float32'] / 1e9:,.0f} GFLOP/s in float32; " + _bf16(found)
    memory = found["memory_available"]
    yield f"Memory available: {'unknown' if memory is None else f'{memory / 1e9:,.1f} GB'}"
    writable = "can be written" if found["runs_writable"] else "cannot be written"
    yield f"Disk: {found['disk_free'] / 1e9:,.1f} GB free here; runs/ {writable}"
    if not found["problems"]:
        yield "Everything needed is there."
    elif len(found["problems"]) == 1:
        yield f"Missing: {found['problems'][0]}"
    else:
        yield "Missing: " + "; ".join(f"({i}) {problem}" for i, problem in enumerate(found["problems"], 1))


def _bf16(found: dict[str, Any]) -> str:
    ratio = found["speed_float32"] / found["speed_bf16"]
    if ratio >= 1.05:
        return f"bf16 is {ratio:.2g} times slower here: float32 is used"
    return f"bf16 is {1 / ratio:.2g} times as fast here; float32 is used"
