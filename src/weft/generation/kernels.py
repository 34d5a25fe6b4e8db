"""Compiled loops for decoding: a few vectors times a large matrix, and one query over a table of keys.

With so few rows the time goes into reading the matrix, so the loops read it once, at the speed of memory, on all
cores. numba compiles them at their first use (it needs no compiler on the machine) and keeps the result on disk.
Import this file only where numba is installed; `weft.generation.packing` does so and knows what to do without.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import numba
import numpy as np
import torch
from numba import njit, prange, types
from numba.extending import overload
from numpy.typing import NDArray

logging.getLogger("numba").setLevel(logging.WARNING)
Floats = NDArray[np.float32]
Entries = NDArray[Any]  # float32, int16 (which is bfloat16) or int8
NUMBA_OPTIONS: dict[str, Any] = {"parallel": True, "fastmath": {"reassoc", "contract", "nsz"}, "cache": True}


def use_threads() -> None:
    """As many threads as torch has been given."""
    numba.set_num_threads(max(1, min(torch.get_num_threads(), os.cpu_count() or 1)))


def value(entry: Any) -> Any:
    """An entry of a matrix as float32, whatever form it is kept in."""


@overload(value)
def _value(entry):  # type: ignore[no-untyped-def]
    """numba picks one by the type of the entry; it wants the same bare names everywhere."""

    def upper_half(entry):  # type: ignore[no-untyped-def]
        return np.int32(np.int32(entry) << 16).view(np.float32)

    def number(entry):  # type: ignore[no-untyped-def]
        return np.float32(entry)

    return upper_half if entry == types.int16 else number  # bfloat16 is the upper half of a float32


@njit(**NUMBA_OPTIONS)  # type: ignore[untyped-decorator]
def times_one(matrix: Entries, scale: Floats, bias: Floats, x: Floats, out: Floats) -> None:
    """out = matrix · x · scale + bias for a matrix (N, D) in any form, scale and bias (N), x (D), out (N)."""
    rows, width = matrix.shape
    for i in prange(rows):
        total = np.float32(0)
        for j in range(width):
            total += value(matrix[i, j]) * x[j]
        out[i] = total * scale[i] + bias[i]


@njit(**NUMBA_OPTIONS)  # type: ignore[untyped-decorator]
def times_some(matrix: Entries, scale: Floats, bias: Floats, x: Floats, out: Floats) -> None:
    """The same for several x (M, D) and out (M, N): six rows of the matrix by two of x at a time, so that what is
    loaded is used more than once. Both must have at least that many; at the end some are done twice."""
    rows, width = matrix.shape
    count = x.shape[0]
    for block in prange((rows + 5) // 6):
        i = min(6 * block, rows - 6)
        for pair in range((count + 1) // 2):
            m = min(2 * pair, count - 2)
            a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = e0 = e1 = f0 = f1 = np.float32(0)
            for j in range(width):
                x0, x1 = x[m, j], x[m + 1, j]
                a, b, c = value(matrix[i, j]), value(matrix[i + 1, j]), value(matrix[i + 2, j])
                d, e, f = value(matrix[i + 3, j]), value(matrix[i + 4, j]), value(matrix[i + 5, j])
                a0 += a * x0
                a1 += a * x1
                b0 += b * x0
                b1 += b * x1
                c0 += c * x0
                c1 += c * x1
                d0 += d * x0
                d1 += d * x1
                e0 += e * x0
                e1 += e * x1
                f0 += f * x0
                f1 += f * x1
            first, second = (a0, b0, c0, d0, e0, f0), (a1, b1, c1, d1, e1, f1)
            for k in range(6):
                out[m, i + k] = first[k] * scale[i + k] + bias[i + k]
                out[m + 1, i + k] = second[k] * scale[i + k] + bias[i + k]


@njit(**NUMBA_OPTIONS)  # type: ignore[untyped-decorator]
def attend(query: Floats, key: Floats, value: Floats, length: int, beta: float, out: Floats) -> None:
    """softargmax(β·q·k)·v for one query a row, over the first `length` slots of tables of keys and values.

    query (B, H, K), key (B, G, slots, K), value (B, G, slots, W), out (B, H, W).
    """
    batch, heads, width = query.shape
    groups = key.shape[1]
    value_width = value.shape[3]
    share = heads // groups
    for task in prange(batch * heads):
        row, head = task // heads, task % heads
        group = head // share
        scores = np.empty(length, dtype=np.float32)
        top = np.float32(-np.inf)
        for s in range(length):
            score = np.float32(0)
            for k in range(width):
                score += query[row, head, k] * key[row, group, s, k]
            scores[s] = score * np.float32(beta)
            top = max(top, scores[s])
        total = np.float32(0)
        for s in range(length):
            scores[s] = np.exp(scores[s] - top)
            total += scores[s]
        mixed = np.zeros(value_width, dtype=np.float32)
        for s in range(length):
            weight = scores[s]
            for k in range(value_width):
                mixed[k] += weight * value[row, group, s, k]
        for k in range(value_width):
            out[row, head, k] = mixed[k] / total
