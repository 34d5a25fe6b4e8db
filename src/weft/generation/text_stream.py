"""Tokens to text while they come: no character is shown before all its bytes are there, no part of a stop string
before it is certain that it is none."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from weft.text import Tokenizer

CONTEXT_TOKENS = 8  # tokens before the new ones that decide how these are spelled (a space, say)


class TextStream:
    """`push` a token, receive the text that is certain; `stopped` once a stop string has appeared.

    All pieces together are the text of the tokens, up to the stop string. A character that is cut off at the very
    end is left out.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = (), stop: Sequence[str] = ()) -> None:
        self.tokenizer, self.stop = tokenizer, tuple(stop)
        self.stopped = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._recent = list(prompt[-CONTEXT_TOKENS:])  # only for tokenizers whose tokens cannot be spelled one by one
        self._shown = len(self._recent)
        self._held = ""

    def push(self, token: int) -> str:
        """The text that this token makes certain; often all of its own, sometimes none."""
        if self.stopped:
            return ""
        return self._release(self._spell(token))

    def finish(self) -> str:
        """What was held back."""
        rest, self._held = "" if self.stopped else self._held, ""
        return rest

    def _spell(self, token: int) -> str:
        if self.tokenizer.kind != "other":
            return self._decoder.decode(self.tokenizer.decode_bytes([token]))
        self._recent.append(token)
        before = self.tokenizer.decode(self._recent[: self._shown])
        now = self.tokenizer.decode(self._recent)
        if now.endswith("\ufffd") or not now.startswith(before):  # in the middle of a character
            return ""
        self._recent = self._recent[-CONTEXT_TOKENS:]
        self._shown = len(self._recent)
        return now[len(before) :]

    def _release(self, text: str) -> str:
        self._held += text
        found = [at for at in (self._held.find(word) for word in self.stop) if at >= 0]
        if found:
            self.stopped = True
            certain, self._held = self._held[: min(found)], ""
            return certain
        kept = max((_overlap(self._held, word) for word in self.stop), default=0)
        cut = len(self._held) - kept
        certain, self._held = self._held[:cut], self._held[cut:]
        return certain


def _overlap(text: str, word: str) -> int:
    """How many characters at the end of the text could be the beginning of the word."""
    return next((n for n in range(min(len(text), len(word) - 1), 0, -1) if text.endswith(word[:n])), 0)
