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
from numba import njit, prange
from numpy.typing import NDArray

logging.getLogger("numba").setLevel(logging.WARNING)
Floats = NDArray[np.float32]
OPTIONS: dict[str, Any] = {"parallel": True, "fastmath": {"reassoc", "contract", "nsz"}, "cache": True}


def use_threads() -> None:
    """As many threads as torch has been given."""
    numba.set_num_threads(max(1, min(torch.get_num_threads(), os.cpu_count() or 1)))


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def times_float32(matrix: Floats, bias: Floats, x: Floats, out: Floats) -> None:
    """out[m] = matrix · x[m] + bias, for matrix (N, D), bias (N), x (M, D), out (M, N)."""
    rows, width = matrix.shape
    for i in prange(rows):
        for m in range(x.shape[0]):
            total = np.float32(0)
            for j in range(width):
                total += matrix[i, j] * x[m, j]
            out[m, i] = total + bias[i]


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def times_bfloat16(matrix: NDArray[np.int16], bias: Floats, x: Floats, out: Floats) -> None:
    """The same for a matrix in bfloat16, which is the upper half of a float32."""
    rows, width = matrix.shape
    for i in prange(rows):
        for m in range(x.shape[0]):
            total = np.float32(0)
            for j in range(width):
                total += np.int32(np.int32(matrix[i, j]) << 16).view(np.float32) * x[m, j]
            out[m, i] = total + bias[i]


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def times_int8(matrix: NDArray[np.int8], scale: Floats, bias: Floats, x: Floats, out: Floats) -> None:
    """The same for a matrix of whole numbers and a scale for each of its rows."""
    rows, width = matrix.shape
    for i in prange(rows):
        for m in range(x.shape[0]):
            total = np.float32(0)
            for j in range(width):
                total += np.float32(matrix[i, j]) * x[m, j]
            out[m, i] = total * scale[i] + bias[i]


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
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
