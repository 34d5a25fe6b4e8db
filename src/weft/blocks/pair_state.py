"""What a recurrent layer remembers of the text it is writing: one state for each row, owned by the caller."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.errors import ShapeError, UnsupportedError


class StateCache:
    """The state after the last token, of the same size however many were read; None before the first."""

    def __init__(self) -> None:
        self.state: Float[Tensor, "B D"] | None = None
        self.length = 0

    def __repr__(self) -> str:
        return f"StateCache({self.length} tokens)"

    @property
    def start(self) -> int:
        return self.length

    def positions(self, device: torch.device) -> Int[Tensor, "S"]:
        return torch.arange(self.length, device=device)

    def put(self, state: Float[Tensor, "B D"], tokens: int) -> None:
        """The state after so many more tokens."""
        self.state, self.length = state, self.length + tokens

    def before(self, first: Float[Tensor, "N D"], rows: int) -> Float[Tensor, "R D"]:
        """The state from which `rows` texts go on: the last one, or `first` if nothing was written yet."""
        found = first if self.state is None else self.state
        if len(found) != rows:
            raise ShapeError(f"{rows} rows for states of {len(found)}", expected="the same batch")
        return found

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        limit = torch.as_tensor(tokens)
        if (limit < 0).any():
            raise ShapeError(f"rewind to {tokens} tokens", expected="0 or more")
        if not limit.any():
            self.state, self.length = None, 0
        elif (limit < self.length).any():
            raise UnsupportedError(
                "rewinding a recurrent state", expected="all of it or nothing: the old ones are gone"
            )

    def select(self, rows: Int[Tensor, "R"]) -> None:
        if self.state is not None:
            self.state = self.state.index_select(0, rows)
