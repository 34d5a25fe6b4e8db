"""How well a model has learned after so many minutes, through the command as a user types it.

    python benchmarks/learning.py DATA_FOLDER            tinyshakespeare against nanoGPT's loss, and two curves
    python benchmarks/learning.py DATA_FOLDER shakespeare | wikitext2 | demo

One JSON line each: {"name", "ours", "peer", "ratio"}, losses in nats per token (bits per byte for the curves,
which have no peer); ratio > 1: lower than the peer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SHAKESPEARE = {0.5: 1.88, 2.5: 1.60}  # nanoGPT's CPU recipe needs 100 to 145 s for 1.886 on the machine measured
CURVE = (0.5, 1.0, 2.0)


def learn(words: list[str], minutes: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "weft", "train", "generate", *words, "--minutes", str(minutes), "--json"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return json.loads(result.stdout.splitlines()[-1])


def say(name: str, done: dict[str, Any], ours: float, peer: float | None) -> None:
    ratio = None if peer is None else round(peer / ours, 4)
    times = {"seconds": done["seconds"], "steps": done["steps"]}
    print(json.dumps({"name": name, "ours": round(ours, 4), "peer": peer, "ratio": ratio, **times}), flush=True)


def main() -> None:
    data, only = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if not only or "shakespeare" in only:
        text = str(data / "tinyshakespeare" / "input.txt")
        for minutes, peer in SHAKESPEARE.items():
            done = learn([text, "--tokenizer", "characters"], minutes)
            say(f"learn/tinyshakespeare/{minutes}min", done, done["validation_loss"], peer)
    wikitext = [str(data / "wikitext2" / "valid.txt"), "--validation", str(data / "wikitext2" / "test.txt")]
    for name, words in (("wikitext2", wikitext), ("demo", ["demo"])):
        if not only or name in only:
            for minutes in CURVE:
                done = learn(words, minutes)
                say(f"learn/{name}/{minutes}min/bits_per_byte", done, done["bits_per_byte"], None)


if __name__ == "__main__":
    main()
