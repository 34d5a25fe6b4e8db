"""How time and memory of attention kinds grow with the length, beside full attention.

    python benchmarks/attention_scaling.py [KIND…]    lengths 512 to 65 536, forward and backward, width 256, 4 heads
    python benchmarks/attention_scaling.py decode     milliseconds for a token after 1 000 and after 100 000 others

One JSON line for each length, in seconds and megabytes (the peak of a process of its own, less what it had before), one
for each exponent between 4 096 and 65 536, and one for each comparison with torch's own full attention between the same
maps. Causal, as a model that writes needs it, and two-way. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from side_by_side import compare, seconds

from weft.blocks import AttentionConfig, Mask
from weft.training.allocation import keep_freed_memory

WIDTH, HEADS, WINDOW = 256, 4, 256
KINDS: dict[str, dict[str, object]] = {"local": {"window": WINDOW}, "linear": {}}
OTHERS: dict[str, dict[str, object]] = {
    "dilated": {"window": 64, "dilation": 4},
    "strided": {"stride": 128},
    "global": {"tokens": 16},
    "union": {"of": [{"kind": "local", "window": 128}, {"kind": "global", "tokens": 16}]},
    "random-features": {"features": 128},
}
LENGTHS = (512, 4096, 16384, 65536)


def module_of(kind: str) -> torch.nn.Module:
    torch.manual_seed(0)
    fields = (KINDS | OTHERS).get(kind, {})
    return AttentionConfig.from_config({"kind": kind, "heads": HEADS, **fields}).build(WIDTH)


def work_of(kind: str, length: int, causal: bool) -> Callable[[], None]:
    module, x = module_of(kind), torch.randn(1, length, WIDTH, requires_grad=True)

    def work() -> None:
        module(x, mask=Mask(causal=causal)).sum().backward()
        x.grad = None
        module.zero_grad(set_to_none=True)

    return work


def peak_megabytes() -> float:
    """The most memory that this process ever had."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def measure(kind: str, length: int, causal: bool) -> None:
    """In a process of its own: the peak of two rounds."""
    work_of(kind, 256, causal)()
    before = peak_megabytes()
    work = work_of(kind, length, causal)
    work()
    work()
    print(json.dumps({"megabytes": peak_megabytes() - before}))


def growth(kind: str, causal: bool) -> None:
    """A line for each length, and the exponents. All lengths take turns, so that a slow moment hits all alike."""
    name = f"{kind}/{'causal' if causal else 'two-way'}"
    works = {length: work_of(kind, length, causal) for length in LENGTHS}
    rounds: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for _ in range(6):
        for length, work in works.items():
            repeats = max(1, 4096 // length)
            rounds[length].append(seconds(work, repeats))
    found: dict[int, dict[str, float]] = {}
    for length in LENGTHS:
        words = [sys.executable, __file__, "measure", kind, str(length), "causal" * causal]
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        found[length] = {"seconds": median(rounds[length][1:]), **told}
        shown = {"seconds": round(found[length]["seconds"], 4), "megabytes": round(told["megabytes"])}
        print(json.dumps({"name": f"length/{name}/{length}"} | shown), flush=True)
    for what in ("seconds", "megabytes"):
        exponent = math.log(found[65536][what] / found[4096][what]) / math.log(16)
        print(json.dumps({"name": f"exponent/{name}/{what}", "ours": round(exponent, 3)}), flush=True)


def decode(kind: str) -> None:
    """Milliseconds for one token after so many others, in one layer; the two lengths take turns."""
    module, rounds = module_of(kind).eval(), {1000: [], 100_000: []}
    with torch.inference_mode():
        caches = {}
        for before in rounds:
            caches[before] = module.new_cache()
            for start in range(0, before, 4096):
                chunk = torch.randn(1, min(4096, before - start), WIDTH)
                module(chunk, mask=Mask(causal=True), cache=caches[before])
        for _ in range(3000):
            for before, spent in rounds.items():
                token = torch.randn(1, 1, WIDTH)
                begin = time.perf_counter()
                module(token, mask=Mask(causal=True), cache=caches[before])
                spent.append(time.perf_counter() - begin)
    found = {before: 1000 * median(spent) for before, spent in rounds.items()}
    for before, spent in found.items():
        print(json.dumps({"name": f"decode/{kind}/{before}", "ours": round(spent, 4)}), flush=True)
    print(json.dumps({"name": f"decode/{kind}/growth", "ours": round(found[100_000] / found[1000], 3)}), flush=True)


def main() -> None:
    keep_freed_memory()  # as the trainer does
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "measure":
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "causal")
        return
    if what == "decode":
        for kind in KINDS:
            decode(kind)
        return
    chosen = sys.argv[1:] or [*KINDS, *OTHERS]
    for kind in (kind for kind in KINDS if kind in chosen):
        for causal in (True, False):
            for length, rounds in ((512, 7), (16384, 3)):
                name = f"attention/{kind}/{'causal' if causal else 'two-way'}/{length}"
                compare(name, work_of(kind, length, causal), work_of("softmax", length, causal), rounds=rounds)
            growth(kind, causal)
    for kind in (kind for kind in OTHERS if kind in chosen):
        growth(kind, causal=True)


if __name__ == "__main__":
    main()
