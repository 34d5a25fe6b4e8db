"""Two ways to do the same work, timed in turns: the ratio is what counts, the machine is noisy."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

ROUNDS = 7


def seconds(work: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def compare(
    name: str, ours: Callable[[], object], peer: Callable[[], object], *, rounds: int = ROUNDS, units: float = 1
) -> float:
    """One JSON line with the median speed of both and ours / peer; > 1: we are faster.

    Speed is in runs per second, or in `units` per second if a run does several units of work (tokens, say).
    The two take turns, and the ratio is the median over the rounds of what each round gave, so that a
    slow moment of the machine hits both alike.
    """
    warm = max(seconds(ours, 1), seconds(peer, 1), seconds(ours, 1), seconds(peer, 1))
    repeats = max(1, round(0.3 / warm))
    pairs = []
    for i in range(rounds):
        first, second = (ours, peer) if i % 2 == 0 else (peer, ours)
        a, b = seconds(first, repeats), seconds(second, repeats)
        pairs.append((a, b) if i % 2 == 0 else (b, a))
    ratio = statistics.median(b / a for a, b in pairs)
    line = {
        "name": name,
        "ours": round(units / statistics.median(a for a, _ in pairs), 3),
        "peer": round(units / statistics.median(b for _, b in pairs), 3),
        "ratio": round(ratio, 3),
    }
    print(json.dumps(line), flush=True)
    return ratio
