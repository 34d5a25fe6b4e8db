"""The same input for two programs, and what each of them makes of it: for models that write, read, do both, or look."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import DataError, UnsupportedError
from weft.models import (
    ClassifiesText,
    EncoderDecoder,
    EncodesImages,
    FillsMasks,
    ModelConfig,
    Seq2SeqLM,
    learns,
)
from weft.models.converter import CAUSAL, TEXT_TO_TEXT
from weft.models.images import ImageConfig, ImageModel
from weft.text import Tokenizer
from weft.text.hugging_face import lacking_pieces
from weft.text.special import ROLES

Results = dict[str, Tensor]
IMAGES = 3  # that are looked at
SEEN = 2  # places in each direction that are left of them at the end
WRITTEN = 16  # tokens that are written from each source
TIE = 1e-3  # logits that are so near are equal, and either token may be taken
TEXTS = (
    "Once upon a time, there was a model.",
    "  two  spaces,\ttabs\r\nand\n\nlines  ",
    "naïve Ærøskøbing — Привет, 你好, مرحبا, 👩‍👩‍👧 e\u0301",
    "def f(x):\n    return x**2 + 3.14159  # 100%",
    "",
)


class WritingProbe:
    """A few rows of ids, always the same ones, from all over the vocabulary; the logits of each token count."""

    def __init__(self, vocab_size: int, max_length: int) -> None:
        self.rows = [_tokens(n, vocab_size)[None] for n in _lengths(max_length)]
        self.tokens = sum(row.shape[1] for row in self.rows)

    def ours(self, model: nn.Module) -> Results:
        """Our logits."""
        return {"logits": torch.cat([model(row)[0] for row in self.rows])}

    def theirs(self, model: Any) -> Results:
        """The logits of a model of transformers."""
        return {"logits": torch.cat([model(row).logits[0] for row in self.rows])}


class ReadingProbe:
    """Such rows as one batch with padding, each with all its segments; states and what the head says count."""

    def __init__(self, config: Any) -> None:
        lengths = torch.tensor(_lengths(config.max_length))[:, None]
        places, longest = torch.arange(int(lengths.max())), int(lengths.max())
        self.keep = places < lengths
        rows = torch.stack([_tokens(longest, config.vocab_size, int(n)) for n in lengths])
        self.ids = rows  # what stands in the padding is a token like any other, and must not matter
        self.segments = (places * config.segments // lengths).clamp(max=config.segments - 1)
        self.tokens = int(self.keep.sum())

    def ours(self, model: Any) -> Results:
        """States of the real tokens, and every logit."""
        hidden, head = model.hidden(self.ids, self.segments, self.keep), model.config.head
        can = model.config.provides
        found: Results = {"states": hidden[self.keep]}
        if head.kind == "pooled":
            found["pooled"] = model.pooled(hidden)
        if FillsMasks in can:
            found["masked_logits"] = model.masked_logits(hidden[self.keep])
        if head.pairs:
            found["pair_logits"] = model.pair_logits(hidden)
        if ClassifiesText in can:
            found["class_logits"] = model.class_logits(hidden)
        if head.kind == "tokens":
            found["token_logits"] = model.token_logits(hidden[self.keep])
        return found

    def theirs(self, model: Any) -> Results:
        """The same of a model of transformers, whatever its class calls it."""
        given = {"attention_mask": self.keep.long(), "token_type_ids": self.segments}
        answer = model(self.ids, **given, output_hidden_states=True)
        found: Results = {"states": answer.hidden_states[-1][self.keep]}
        kind = type(model).__name__
        if kind == "BertForPreTraining":
            found |= {
                "masked_logits": answer.prediction_logits[self.keep],
                "pair_logits": answer.seq_relationship_logits,
            }
        elif kind == "BertForMaskedLM":
            found["masked_logits"] = answer.logits[self.keep]
        elif kind == "BertForNextSentencePrediction":
            found["pair_logits"] = answer.logits
        elif kind == "BertForSequenceClassification":
            found["class_logits"] = answer.logits
        elif kind == "BertForTokenClassification":
            found["token_logits"] = answer.logits[self.keep]
        else:
            found["pooled"] = answer.pooler_output
        return found


class TranslatingProbe:
    """Such rows as sources with padding, and targets that begin with the start token; all logits count."""

    def __init__(self, config: ModelConfig) -> None:
        vocab_size, max_length, self.start = (int(getattr(config, n)) for n in ("vocab_size", "max_length", "start"))
        lengths = torch.tensor(_lengths(max_length))[:, None]
        longest = int(lengths.max())
        self.keep = torch.arange(longest) < lengths
        known = getattr(config, "source_vocab_size", None) or vocab_size
        self.sources = torch.stack([_tokens(longest, known, int(n)) for n in lengths])
        self.targets = torch.stack([_tokens(longest, vocab_size, 1 + int(n)) for n in lengths])
        self.targets[:, 0] = self.start
        self.tokens = int(self.keep.sum()) + self.targets.numel()
        self.written = min(WRITTEN, max_length - 2)

    def ours(self, model: nn.Module) -> Results:
        """Our logits."""
        return {"logits": model(self.sources, self.targets, source_keep=self.keep).flatten(0, 1)}

    def theirs(self, model: Any) -> Results:
        """The logits of a model of transformers."""
        given = {"input_ids": self.sources, "attention_mask": self.keep.long()}
        return {"logits": model(**given, decoder_input_ids=self.targets).logits.flatten(0, 1)}

    def compare_writing(self, ours: EncoderDecoder, theirs: Any, end: int | None, never: Sequence[int]) -> int:
        """Let both write, always the likeliest token, each as its own files say; how many tokens that were."""
        if self.written < 1:
            return 0
        found = theirs.generate(  # one more than is compared: the last may be forced to be the end
            input_ids=self.sources,
            attention_mask=self.keep.long(),
            num_beams=1,
            do_sample=False,
            max_new_tokens=self.written + 1,
        ).tolist()
        count = 0
        for row, (text, leads) in zip(found, self._greedy(ours, never), strict=True):
            if row[0] != self.start:
                raise DataError(
                    f"opened by transformers, the folder begins a text with token {row[0]}, not {self.start}"
                )
            for token, wanted, lead in zip(row[1:], text, leads, strict=False):
                if token != wanted and lead > TIE:
                    raise DataError("opened by transformers, the folder writes other tokens", expected="the same model")
                if token != wanted:
                    break
                count += 1
                if token == end:
                    break
        return count

    def _greedy(self, model: EncoderDecoder, never: Sequence[int]) -> list[tuple[list[int], list[float]]]:
        """For each source the likeliest tokens, one by one, and by how much they led."""
        memory, caches = model.encode(self.sources, self.keep), model.new_caches()
        tokens, written, leads = torch.full((len(self.sources),), self.start), [], []
        for _ in range(self.written):
            logits = model.logits(model.states(tokens[:, None], memory, caches=caches))[:, -1]
            logits[:, list(never)] = -torch.inf
            best = logits.topk(min(2, logits.shape[1]))
            tokens = best.indices[:, 0]
            written.append(tokens)
            leads.append(best.values[:, 0] - best.values[:, -1])
        return list(zip(torch.stack(written, 1).tolist(), torch.stack(leads, 1).tolist(), strict=True))


class ImageProbe:
    """A few random images, always the same ones; the state of each place and what the head says count."""

    def __init__(self, config: ImageConfig) -> None:
        size = getattr(config, "image_size", None) or SEEN * getattr(config, "smallest", 32)
        drawn = np.random.default_rng(7919).standard_normal((IMAGES, config.channels, size, size), dtype=np.float32)
        self.pixels = torch.from_numpy(drawn)
        self.images = IMAGES

    def ours(self, model: nn.Module) -> Results:
        """States, and the logits of classes or the vector of the whole image."""
        assert isinstance(model, ImageModel)
        states, head = model.hidden(self.pixels), model.config.head
        if head.classes:
            return {"states": states, "class_logits": model.class_logits(states)}
        pooled = model.pooled(states)
        return {"states": states, "pooled": pooled if model.classes is None else model.classes(pooled)}

    def theirs(self, model: Any) -> Results:
        """The same of a model of transformers; some of them keep rows and columns apart."""
        trunk = model.base_model(self.pixels)
        states = trunk.last_hidden_state
        states = states if states.dim() == 3 else states.flatten(2).transpose(1, 2)
        if hasattr(model, "classifier"):
            return {"states": states, "class_logits": model(self.pixels).logits}
        return {"states": states, "pooled": trunk.pooler_output}


Probe = WritingProbe | ReadingProbe | TranslatingProbe | ImageProbe


def probe_for(config: ModelConfig) -> Probe:
    """The input that shows what a model of this kind does."""
    if learns(config.kind, FillsMasks):
        return ReadingProbe(config)
    if EncodesImages in config.provides:
        return ImageProbe(cast(ImageConfig, config))
    if Seq2SeqLM in config.provides:
        return TranslatingProbe(config)
    return WritingProbe(getattr(config, "vocab_size", 1), getattr(config, "max_length", 64))


def _lengths(max_length: int) -> list[int]:
    return sorted({1, min(7, max_length), min(64, max_length)})


def _tokens(count: int, vocab_size: int, salt: int | None = None) -> Tensor:
    return (torch.arange(count) * 7919 + 13 * (count if salt is None else salt)) % vocab_size


# -- tokenizers -------------------------------------------------------------------------------


def compare_tokenizers(ours: Tokenizer, theirs: Any, auto: str) -> dict[str, int]:
    """How many texts and pairs were found to have the same ids; `DataError` at the first that has others.

    `auto` is the class that opens the model: one that reads joins texts by two, one that translates wants their end.
    """
    split = lacking_pieces(ours) > 0  # what is unknown here is spelled there
    for text in TEXTS:
        ids = ours.encode(text).tolist()
        if split and ours.special.unknown in ids:
            continue
        _same(f"the ids for {text[:30]!r}", theirs(text, add_special_tokens=False)["input_ids"], ids)
        if auto == TEXT_TO_TEXT:
            called = theirs(text)
            _same(f"the ids for {text[:30]!r} with its end", called["input_ids"], [*ids, ours.end])
            _same("the inputs of a model", sorted(called), ["attention_mask", "input_ids"])
    reads = auto not in (CAUSAL, TEXT_TO_TEXT)
    end = None if reads and ours.special.end == ours.special.separate else ours.special.end
    for role, name in ROLES.items():
        expected = end if role == "end" else getattr(ours.special, role)
        if role == "pad" and auto == TEXT_TO_TEXT and expected is None:
            expected = end
        if role == "end" or expected is not None:
            _same(f"the {name}", getattr(theirs, f"{name}_id"), expected)
    return {"texts_tokenised": len(TEXTS)} | (_compare_pairs(ours, theirs) if reads else {})


def _compare_pairs(ours: Tokenizer, theirs: Any) -> dict[str, int]:
    """Texts alone and by two, with the special tokens around them and their segments."""
    pairs: list[tuple[str, str | None]] = [*((text, None) for text in TEXTS), *pairwise(TEXTS)]
    try:
        joined = ours.encode_pairs(pairs)
    except UnsupportedError:  # it has no tokens to join texts with, or a stranger's way to do it
        return {}
    for (first, second), (ids, segments) in zip(pairs, joined, strict=True):
        # as lists: a call with one pair of texts forgets the second if it is empty
        found = theirs([first], None if second is None else [second])
        what = f"{first[:20]!r} and {second[:20]!r}" if second is not None else repr(first[:30])
        _same(f"the ids for {what} with special tokens", found["input_ids"], [ids.tolist()])
        _same(f"the segments for {what}", found.get("token_type_ids"), [segments.tolist()])
    return {"pairs_tokenised": len(pairs)}


def _same(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise DataError(f"opened by transformers, the tokenizer gives {what} in another way")
