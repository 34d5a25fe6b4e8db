"""What the model and its training cost: parameters by part, operations, memory, seconds."""

from __future__ import annotations

from collections.abc import Mapping

from weft.models import ModelConfig
from weft.pages import Bar, bars, figure, table
from weft.report.run_files import RunFiles
from weft.tasks.inspection import inspected

FEW = 12  # parts that are drawn


def cost(files: RunFiles) -> str:
    """A table of what is known, and where the parameters and operations are."""
    rows = [row for row in _rows(files) if row[1]]
    return table(("what", "how much", ""), rows) + _parts(files)


def _rows(files: RunFiles) -> list[tuple[str, str, str]]:
    plan, steps = files.plan, files.progress.get("step") or len(files.steps)
    seconds = max(files.seconds.values(), default=0.0)
    flops = (plan.get("flops") or 0.0) * steps
    counted = "forward and backward, counted from the shapes"
    each = sorted(line.get("seconds", 0.0) for line in files.timing)
    rows = [
        ("parameters", f"{plan['parameters']:,}" if plan.get("parameters") else "", ""),
        ("memory", f"{plan['memory'] / 2**20:,.0f} MB" if plan.get("memory") else "", "as predicted before training"),
        ("operations of a step", _amount(plan.get("flops")), counted),
        ("operations of all steps", _amount(flops), f"{steps:,} steps"),
        ("seconds of training", _seconds(seconds), "without reading, planning and measuring"),
        ("seconds of a step", f"{each[len(each) // 2]:.3g} s" if each else "", "the median"),
        ("speed", f"{_amount(flops / seconds)}/s" if flops and seconds else "", "operations a second, reached"),
        ("weights on disk", _size(files), "model.safetensors"),
    ]
    machine = [f"{name} {files.environment[key]}" for key, name in _MACHINE.items() if key in files.environment]
    return [*rows, ("machine", str(files.environment.get("system", "")), ", ".join(machine))]


_MACHINE = {"processors": "processors:", "threads": "threads in use:", "cpu_capability": "kernels for"}


def _parts(files: RunFiles) -> str:
    """Of a model that is learned in steps; counts and tables have no parts."""
    config = ModelConfig.from_config(files.config["model"])
    if not config.learned_in_steps:
        return ""
    found = inspected(str(files.path.absolute())).cost
    shown = _share_of("Parameters by part", "parameters", found.parameters_by_part)
    operations = {part: one.total for part, one in found.parts.items()}
    if not found.flops:  # it looks up and adds
        return shown
    return shown + _share_of("Operations of a step by part", "operations", operations)


def _share_of(title: str, unit: str, amounts: Mapping[str, float]) -> str:
    """Bars of the largest parts, and a table of all."""
    total = max(1, sum(amounts.values()))
    rows = [(name, amount, f"{amount / total:.1%}") for name, amount in amounts.items()]
    largest = sorted(amounts.items(), key=lambda item: -item[1])[:FEW]
    drawn = bars(title, [Bar(name, amount, _amount(amount), 0) for name, amount in largest])
    return figure(title, drawn, ("part", unit, "share"), rows)


def _size(files: RunFiles) -> str:
    file = files.path / "model.safetensors"
    return f"{file.stat().st_size / 1e6:,.2f} MB" if file.exists() else ""


def _amount(value: float | None) -> str:
    """1.2 T: short, in powers of a thousand."""
    if not value:
        return ""
    for unit in ("", " k", " M", " G", " T", " P"):
        if value < 999.5 or unit == " P":
            return f"{value:.3g}{unit}"
        value /= 1000
    return ""


def _seconds(value: float) -> str:
    if not value:
        return ""
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} minutes" if value < 7200 else f"{value / 3600:.1f} h"
