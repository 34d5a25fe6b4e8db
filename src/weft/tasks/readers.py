"""Which families of models say what a text is, and how each is planned for.

A family needs a config with a field `head` that takes `{"kind": "classes", …}` (with the fields of
`models.classes.Classes`), and a model that is a `models.TextClassifier`, whose `classes` end with an `nn.Linear` with a
bias; then one entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.training import AdamWConfig


@dataclass(frozen=True)
class Reader:
    """How a family begins on a table of its own, before the user says otherwise.

    sizes       fields of the model
    learning    settings of training
    objective   fields of the objective, where they are not the usual ones
    """

    sizes: Mapping[str, Any]
    learning: Mapping[str, Any]
    objective: Mapping[str, Any] = field(default_factory=dict)


_RECURRENT = Reader(
    sizes={"width": 128, "depth": 1, "dropout": 0.3, "both_ways": True},
    learning={"optimizer": AdamWConfig(learning_rate=0.004, weight_decay=0.0), "warmup": 0.05, "decay": 0.95},
)
READERS = {
    "bert": Reader(
        sizes={"width": 128, "depth": 2, "attention.heads": 4, "dropout": 0.3},
        learning={  # rates: low for the matrices, which would learn a small table by heart
            "optimizer.learning_rate": 0.002,
            "optimizer.embedding_rate": 0.005,
            "optimizer.head_rate": 0.005,
            "warmup": 0.05,
            "decay": 0.95,
        },
    ),
    "lstm": _RECURRENT,
    "gru": _RECURRENT,
    "rnn": _RECURRENT,
}
