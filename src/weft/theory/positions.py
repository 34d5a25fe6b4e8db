"""Claims about the positional code."""

from __future__ import annotations

import math

import torch

from weft.blocks import Learned, Sinusoidal, sinusoids
from weft.errors import ShapeError
from weft.theory.claim import Chart, Evidence, claim, evidence, table, value
from weft.theory.counting import largest
from weft.theory.prediction import ZERO, AtLeast, AtMost, Near


@claim(
    "T25",
    "The positional code",
    says="""A positional code should be bounded, unique for each position, generalise to longer sequences, and express
    the number of steps between two tokens in the same way everywhere. Sines and cosines of n/L^(i/D) do.""",
    document="002",
    where="slides “Positional encoding”",
    seconds=0.3,
)
def sinusoidal() -> Evidence:
    """Bounds, distances, the rotation that is a shift, dot products, and positions that nobody trained."""
    width, length, shift = 32, 2000, 7
    code = sinusoids(torch.arange(length + shift), width)
    angles = shift * 10_000.0 ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
    rotation = torch.block_diag(  # type: ignore[no-untyped-call]
        *(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in angles.tolist())
    )
    shifted = largest(code[:-shift] @ rotation.T - code[shift:])
    products = (code[:-shift] * code[shift:]).sum(-1)
    distances = torch.cdist(code[:length], code[:length]) + 9 * torch.eye(length)
    direct = math.sin(5 / 10_000 ** (6 / width)), math.cos(5 / 10_000 ** (6 / width))
    learned = Learned(64, width)
    try:
        learned.at_input(torch.zeros(1, 65, width), torch.arange(65))
        refused = False
    except ShapeError:
        refused = True
    far = Sinusoidal(width).at_input(torch.zeros(1, 1, width), torch.tensor([1_000_000]))
    same = [float(code[0] @ code[k]) for k in range(0, 60, 2)]
    corner = rotation[:4, :4].tolist()
    return evidence(
        value("largest entry", float(code.abs().max()), document=AtMost(1)),
        value("least distance of two of 2,000 positions", float(distances.min()), document=AtLeast(0.01)),
        value(f"r(n + {shift}) − rotation · r(n)", shifted, document=ZERO),
        value("r(n)·r(n + 7): most − least over n", float(products.max() - products.min()), document=ZERO),
        value(
            "entries 6 and 7 of position 5 − the formula",
            max(abs(float(code[5, 6 + n]) - direct[n]) for n in (0, 1)),
            document=ZERO,
        ),
        value("length of the code of position 1,000,000", float(far.norm()), document=Near(math.sqrt(width / 2), 1e-9)),
        value("a table of 64 learned positions refuses the 65th", refused, right=True),
        says="""All four hold. A shift is one fixed rotation of each pair of sine and cosine, so the dot product of two
        codes depends on their offset alone. Beyond any trained length the code goes on as it is, bounded and unique;
        what a model makes of angles that it never saw is another question. Learned positions end where they end.""",
        brief=3,
        show=[
            table(
                "The rotation by 7 places, its first two pairs",
                ("", "sin", "cos", "sin", "cos"),
                [("", *row) for row in corner],
            ),
            Chart(
                "r(n)·r(n + k), whatever n is",
                "k",
                "dot product",
                {"width 32": [(float(k), p) for k, p in zip(range(0, 60, 2), same, strict=True)]},
            ),
        ],
    )
