"""The sections of `weft inspect` about cost: parameters, operations, memory, seconds, and curves."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft.cli.inspect_section import InspectSection, Told

if TYPE_CHECKING:
    from weft.cost.curves import Price
    from weft.cost.learning import Learning
    from weft.cost.seconds import Clock
    from weft.models import ModelConfig
    from weft.tasks.inspection import Inspected

NARROW = 60  # columns; below, a row of a table takes two lines
PLAIN = "all pairs, as the plain kernel computes them"


# -- what is inspected ------------------------------------------------------------------------


def _model(found: Inspected, told: Told) -> dict[str, Any]:
    config = found.config
    sizes = {name: getattr(config, name) for name in ("width", "depth", "vocab_size") if hasattr(config, name)}
    return {"name": found.name, "family": config.kind, **sizes, "length": found.length, "batch": found.batch}


def _tell_model(found: Inspected, told: Told, columns: int) -> Iterator[str]:
    model = told["model"]
    sizes = [
        f"{name.replace('vocab_size', 'vocabulary')} {model[name]:,}"
        for name in ("depth", "width", "vocab_size")
        if model.get(name)
    ]
    yield from _wrapped(f"{found.name}: a {', '.join([model['family'], *sizes])}.", columns)
    for note in found.notes:
        yield from _wrapped(f"Taken: {note}.", columns)


# -- parameters -------------------------------------------------------------------------------


def _parameters(found: Inspected, told: Told) -> dict[str, Any]:
    parts = found.cost.parameters_by_part
    if not found.config.learned_in_steps and found.run is not None:
        counted = sum(len(level.probability) for level in found.run.model.levels)  # type: ignore[union-attr, misc]
        parts = {"counted n-grams": int(counted)}
    return {"total": sum(parts.values()), "parts": parts}


def _tell_parameters(found: Inspected, told: Told, columns: int) -> Iterator[str]:
    parameters = told["parameters"]
    yield f"{parameters['total']:,} parameters"
    yield from _table(
        (), [(part, f"{n:,}", _share(n, parameters["total"])) for part, n in parameters["parts"].items()], columns
    )
    if not found.config.learned_in_steps:
        yield from _wrapped(
            "It learns by counting: how much it holds depends on the text, and there are no steps.", columns
        )


# -- operations -------------------------------------------------------------------------------


def _flops(found: Inspected, told: Told) -> dict[str, Any]:
    from weft.cost.curves import crossing

    cost = found.cost
    total = cost.operations
    parts = {part: {"forward": one.forward, "backward": one.backward} for part, one in cost.parts.items()}
    meets = crossing(found.config, length=found.length, learning=cost.learning) if total.total else None
    return {
        "forward": total.forward,
        "backward": total.backward,
        "total": total.total,
        "parts": parts,
        "counted": PLAIN,
        "unseen": total.unseen,
        "bottleneck": next(iter(parts), None),
        "scores_overtake": None if meets is None else {"attention_maps": meets.maps, "all_maps": meets.everything},
    }


def _tell_flops(found: Inspected, told: Told, columns: int) -> Iterator[str]:
    flops = told["flops"]
    if not flops["total"]:
        yield from _wrapped("No products of matrices: it looks up and adds.", columns)
        return
    yield from _wrapped(f"{_many(flops['total'])} operations in a training step", columns)
    rows = [
        (part, _many(one["forward"]), _many(one["backward"]), _share(one["forward"] + one["backward"], flops["total"]))
        for part, one in flops["parts"].items()
    ]
    yield from _table(("", "forward", "backward", ""), rows, columns)
    yield from _wrapped(f"Most of it is {flops['bottleneck']}. Scores are counted for {PLAIN}.", columns)
    if flops["unseen"]:
        left = flops["unseen"] / flops["total"]
        yield from _wrapped(f"A fast kernel leaves out what a causal mask forbids: {left:.1%} of all this.", columns)
    if flops["scores_overtake"] is not None:
        unit = "rows of an image" if _is_image(found) else "tokens"
        for name, words in (("attention_maps", "attention's own maps"), ("all_maps", "everything else together")):
            at = flops["scores_overtake"][name]
            told_at = "at no length" if at is None else f"from {at:,} {unit} on"
            yield from _wrapped(f"Scores and mixing cost more than {words} {told_at}.", columns)


# -- memory -----------------------------------------------------------------------------------


def _memory(found: Inspected, told: Told) -> dict[str, Any]:
    from weft.cost.estimate import fitting_batch
    from weft.tasks.environment import memory_free, memory_in_use
    from weft.tasks.inspection import process_memory

    free = memory_free("cpu") + memory_in_use()
    process, learning = process_memory(found.training), found.cost.learning
    asked: Told = {"batch": found.batch, "length": found.length, "learning": learning, "process": process}
    memory = found.cost.memory(process)
    fits = memory.total <= free
    known = None if free == float("inf") else int(free)
    return asdict(memory) | {
        "total": memory.total,
        "free": known,
        "fits": fits,
        "at_once": learning.part(found.batch),
        "fitting_batch": found.batch if fits else fitting_batch(found.config, free=free, **asked),
    }


def _tell_memory(found: Inspected, told: Told, columns: int) -> Iterator[str]:
    memory = told["memory"]
    yield from _wrapped(f"{_bytes(memory['total'])} of memory at the peak of a training step", columns)
    names = ("weights", "gradients", "optimizer", "activations", "working", "process")
    words = {"activations": "kept for backward", "working": "on the way", "process": "Python and torch"}
    rows = [(words.get(name, name), _bytes(memory[name]), _share(memory[name], memory["total"])) for name in names]
    yield from _table((), [row for row in rows if row[1] != "0 MB"], columns)
    if memory["table"]:
        unit = f"{found.length:,} tokens"
        yield from _wrapped(
            f"Writing a text of {unit} keeps {_bytes(memory['table'])} of keys, values or states.", columns
        )
    if memory["fits"]:
        yield from _wrapped("It fits into this machine's memory.", columns)
    elif memory["fitting_batch"]:
        small = memory["fitting_batch"]
        parts = "" if _in_bunches(found) else f", or in parts: --set training.micro_batch={small}"
        yield from _wrapped(
            f"It does not fit: {_bytes(memory['free'])} can be had here. With --batch {small} it would{parts}.", columns
        )
    else:
        yield from _wrapped(f"It does not fit, at any batch: {_bytes(memory['free'])} can be had here.", columns)


# -- seconds ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _measured(learning: Learning) -> Clock:
    """This machine, measured once in a process."""
    from weft.cost.seconds import Clock
    from weft.training.allocation import keep_freed_memory

    keep_freed_memory()  # as training does
    assert learning.update is not None
    return Clock.calibrated(learning.update)


def _seconds(found: Inspected, told: Told) -> dict[str, Any]:
    steps = found.steps or 1000
    if _own_loop(found) or not told["memory"]["fits"]:
        return {"step": None, "parts": {}, "steps": steps, "training": None, "bottleneck": None, "smaller": None}
    from weft.tasks.inspection import smaller_than

    parts = found.cost.seconds(_measured(found.cost.learning))
    step = sum(parts.values())
    smaller = smaller_than(found, told["flops"]["total"])
    if smaller is not None:
        smaller["training"] = smaller["share"] * step * steps
    return {
        "step": step,
        "parts": parts,
        "steps": steps,
        "training": step * steps,
        "bottleneck": next(iter(parts), None),
        "smaller": smaller,
    }


def _tell_seconds(found: Inspected, told: Told, columns: int) -> Iterator[str]:
    seconds = told["seconds"]
    if seconds["step"] is None:
        why = "it learns in a loop of its own, which `weft train --dry-run` plans with your data"
        yield from _wrapped(f"No seconds of a step: {why if _own_loop(found) else 'it does not fit here'}.", columns)
        return
    yield from _wrapped(f"About {_clock(seconds['step'])} for a training step here", columns)
    yield from _table(
        (), [(part, _clock(s), _share(s, seconds["step"])) for part, s in seconds["parts"].items()], columns
    )
    why = "" if found.steps else ", as nothing says how many"
    line = f"It would take about {_clock(seconds['training'])} here for {seconds['steps']:,} steps{why}"
    if seconds["smaller"] is not None:
        line += f"; {seconds['smaller']['words']} would take {_clock(seconds['smaller']['training'])}"
    yield from _wrapped(f"{line}. Most of the time is for {seconds['bottleneck']}.", columns)


# -- curves -----------------------------------------------------------------------------------


def _curves(found: Inspected, told: Told) -> dict[str, Any]:
    from weft.cli.progress import counted
    from weft.cost.curves import over_lengths, over_widths

    sizes: dict[str, Any] = {"batch": found.batch, "length": found.length, "learning": found.cost.learning}
    along = {"length": over_lengths(found.config, **sizes), "width": over_widths(found.config, **sizes)}
    price = None if _own_loop(found) else _price(found, told["memory"])
    every = [(name, one) for name, variations in along.items() for one in variations]
    curves: dict[str, list[dict[str, Any]]] = {name: [] for name in along}
    for name, one in counted(every, "other lengths and widths"):
        curves[name].append(asdict(one.point(price)))
    return curves


def _price(found: Inspected, memory: Told) -> Price:
    """Memory, and seconds of what fits."""
    from weft.cost import cost_of

    learning = found.cost.learning
    free = float("inf") if memory["free"] is None else memory["free"]

    def price(config: ModelConfig, length: int) -> tuple[int, float | None]:
        cost = cost_of(config, batch=found.batch, length=length, learning=learning)
        needed = cost.memory(memory["process"]).total
        return needed, sum(cost.seconds(_measured(learning)).values()) if needed <= free else None

    return price


def _tell_curves(found: Inspected, told: Told, columns: int) -> Iterator[str]:
    for name, points in told["curves"].items():
        yield f"Over the {name}"
        rows = [
            (
                f"{p[name]:,}",
                f"{p['parameters']:,}",
                _many(p["flops"]),
                f"{p['scores']:.1%}",
                "" if p["memory"] is None else _bytes(p["memory"]),
                "" if p["memory"] is None else "does not fit" if p["seconds"] is None else _clock(p["seconds"]),
            )
            for p in points
        ]
        yield from _table((name, "parameters", "operations", "scores", "memory", "a step"), rows, columns)


# -- words ------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """Columns as wide as they need to be; on a narrow terminal each row is wrapped."""
    every = [*([heads] if heads else []), *rows]
    widths = [max(len(row[n]) for row in every) for n in range(len(every[0]))] if every else []
    for row in every:
        first, *rest = (f"{cell:{'<' if n == 0 else '>'}{widths[n]}}" for n, cell in enumerate(row))
        line = "  " + "  ".join([first, *rest]).rstrip()
        if len(line) <= columns:
            yield line
        else:
            yield from textwrap.wrap(" ".join(row), columns, initial_indent="  ", subsequent_indent="    ")


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, min(columns, 100))


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else ""


def _many(count: float) -> str:
    for size, word in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:.0f}"


def _bytes(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e10 else f"{count / 1e6:,.0f} MB"


def _clock(seconds: float) -> str:
    for size, word in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {word}"
    return f"{seconds:.3g} seconds" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _own_loop(found: Inspected) -> bool:
    """Whether it counts, or learns word by word: there are no steps of torch to be timed."""
    return not found.config.learned_in_steps or found.config.learned_in_place


def _in_bunches(found: Inspected) -> bool:
    """Whether its training counts its batch in buckets of texts: those of a model that translates."""
    from weft.models import Seq2SeqLM

    return Seq2SeqLM in found.config.provides


def _is_image(found: Inspected) -> bool:
    from weft.models import EncodesImages

    return EncodesImages in found.config.provides


COST: Sequence[InspectSection] = (
    InspectSection("model", _model, _tell_model),
    InspectSection("parameters", _parameters, _tell_parameters),
    InspectSection("flops", _flops, _tell_flops),
    InspectSection("memory", _memory, _tell_memory, "walking through a step"),
    InspectSection("seconds", _seconds, _tell_seconds, "measuring this machine"),
)
CURVES = InspectSection("curves", _curves, _tell_curves)
