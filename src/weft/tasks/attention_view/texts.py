"""Attention maps of a text: one that a model continues, reads, fills in or translates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from weft.analysis.capturing import AttentionMap
from weft.analysis.maps import watched
from weft.analysis.view import AttentionView, Side
from weft.errors import DataError
from weft.models import ClassifiesText, PackedTexts, PairModel
from weft.models.capabilities import FillsMasks
from weft.models.classes import Classes
from weft.models.sites import Rows, attentions
from weft.tasks.attention_view.maps import answer_facts, in_a_few_words, map_views, percent, rollouts_of, token_labels
from weft.tasks.classify.answers import answers_of, labels_of
from weft.tasks.classify.classifier import MAX_IMPORTED_TOKENS, Classifier
from weft.tasks.encoded import encoded
from weft.tasks.fill.filler import MASK
from weft.tasks.fill.span_filler import SpanFiller
from weft.tasks.translate.encoded_pairs import Ids, with_end
from weft.tasks.translate.translator import DEFAULT_SEARCH, TranslationSearch, written

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_MAP_CELLS = 48_000_000  # weights of all heads that are shown at once: 12 layers of 12 heads over 577 tokens
MAX_NEXT_TOKENS = 3


def most_tokens(run: Run, context: int) -> int:
    """How long a text may be: what the model reads, and not more than can be shown of all its heads."""
    heads = sum(getattr(module, "heads", 1) for module in attentions(run.model).values())
    return min(context, max(16, math.isqrt(MAX_MAP_CELLS // heads)))


def writing_view(run: Run, text: str) -> AttentionView:
    """Attention of a language model: every token, and the likeliest next tokens after the last."""
    model, tokenizer = cast(Any, run.model), run.tokenizer
    ids = tokenizer.encode(text).astype(np.int64)
    _check_not_empty(text, len(ids))
    most = most_tokens(run, run.context)
    facts = _count("tokens", len(ids), most)
    row = torch.from_numpy(ids[:most])[None].to(run.device)
    logits, seen = watched(model, lambda: model(row)[0, -1, : tokenizer.vocab_size])
    chances, likely = logits.float().softmax(-1).topk(min(MAX_NEXT_TOKENS, len(logits)))
    labels = token_labels(tokenizer, likely.tolist())
    facts["what follows"] = ", ".join(
        f"{label} {percent(share)}" for label, share in zip(labels, chances.tolist(), strict=True)
    )
    return _self_view(run, text, seen, token_labels(tokenizer, ids[:most]), facts)


def reading_view(run: Run, text: str, pair: str | None) -> AttentionView:
    """Of a model that reads in both directions: `[CLS] text [SEP]` or a pair, and what it says of it."""
    model, tokenizer = run.model, run.tokenizer
    head = getattr(run.model_config, "head", None)
    classifier = Classifier(run) if isinstance(head, Classes) else None
    most = most_tokens(run, classifier.length if classifier else run.model_config.context or MAX_IMPORTED_TOKENS)
    parts = (text,) if pair is None else (text, pair)
    if classifier is not None:
        classifier.check([parts])
    ids, segments, whole = _marked(run, parts, most)
    _check_not_empty(text, whole - 2)
    row = PackedTexts.of([ids], None if segments is None else [segments]).to(run.device)
    facts = _count("tokens", whole, most)
    if classifier is not None:
        logits, seen = watched(model, lambda: cast(ClassifiesText, model).text_logits(row))
        facts |= answer_facts(answers_of(logits.cpu().double().numpy(), labels_of(classifier.head))[0])
    else:
        states, seen = watched(model, lambda: row.states(model))
        facts |= _gaps(run, ids, states)
    title = text if pair is None else f"{in_a_few_words(text, 30)} | {in_a_few_words(pair, 30)}"
    return _self_view(run, title, seen, token_labels(tokenizer, ids), facts)


def pair_view(run: Run, text: str, target: str | None) -> AttentionView:
    """Of a model that writes one text from another: what it reads, and what it looks at while it writes `target`, or
    what it would write itself."""
    model, tokenizer = cast(PairModel[Any], run.model), run.tokenizer
    translator = TranslationSearch(run)
    most = most_tokens(run, translator.length)
    source, whole = _source(run, text, most)
    _check_not_empty(text, whole - 1)
    facts = _count("source", whole, most)
    if target is None:
        limit = [min(most, 3 * len(source) + 20)]
        found = written(model, tokenizer, [source], DEFAULT_SEARCH, start=translator.start, limits=limit)[0][0]
        tokens = np.array([*found.tokens, *([tokenizer.end] if found.ended else [])], dtype=np.int64)
        facts |= {"writes": tokenizer.decode(found.tokens)}
    else:
        (tokens,), _ = with_end(tokenizer, [target], most)
        facts |= {"writes": f"{target} (given)", **_count("target", len(tokenizer.encode(target)) + 1, most)}
    given = np.concatenate([[translator.start], tokens[:-1]])[: max(1, len(tokens))]
    rows = [torch.from_numpy(row)[None].to(run.device) for row in (source, given)]
    _, seen = watched(model, lambda: model(*rows))
    ends = {tokenizer.end: "[end]"}
    reads = Side(token_labels(run.source_tokenizer, source, {run.source_tokenizer.end: "[end]"}))
    has = Side(("[start]", *token_labels(tokenizer, given[1:], ends)))
    writes = Side(tuple(f"→ {label}" for label in token_labels(tokenizer, tokens, ends)) or ("→",))
    return _pair_view(run, text, seen, (reads, has, writes), facts)


def _pair_view(
    run: Run, text: str, seen: dict[str, AttentionMap], labels: tuple[Side, Side, Side], facts: dict[str, str]
) -> AttentionView:
    reads, has, writes = labels
    sides: dict[Rows, Side] = {"source": reads, "written": has, "next": writes}
    sides["source and written"] = Side(reads.labels + has.labels)
    facts |= {"rows with →": "the token that is written next"}
    return _view(run, text, seen, sides, facts)


def _self_view(
    run: Run, text: str, seen: dict[str, AttentionMap], labels: tuple[str, ...], facts: dict[str, str]
) -> AttentionView:
    return _view(run, text, seen, {"text": Side(labels)}, facts)


def _view(
    run: Run, text: str, seen: dict[str, AttentionMap], sides: dict[Rows, Side], facts: dict[str, str]
) -> AttentionView:
    maps = map_views(seen, lambda _, rows: sides[rows])
    return AttentionView(in_a_few_words(text), run.model_config.kind, maps, rollouts_of(maps, seen), facts=facts)


# -- tokens -----------------------------------------------------------------------------------


def _marked(run: Run, parts: Sequence[str], most: int) -> tuple[Ids, Ids | None, int]:
    """The tokens with their marks, which text each belongs to, and how many there would be without a limit."""
    tokenizer = run.tokenizer
    special = tokenizer.special
    if len(parts) == 1 and MASK in parts[0] and None not in (special.mask, special.classify, special.separate):
        inside = tokenizer.encode_with_mask(parts[0], MASK).astype(np.int64)
        ids = np.concatenate([[special.classify], inside[: most - 2], [special.separate]]).astype(np.int64)
        return ids, None, len(inside) + 2
    texts = encoded(tokenizer, [tuple(parts)], most)
    whole = sum(len(tokenizer.encode(part)) + 1 for part in parts) + 1
    return texts.ids[0], None if texts.segments is None else texts.segments[0], whole


def _source(run: Run, text: str, most: int) -> tuple[Ids, int]:
    """The tokens that are read, with their end; where gaps are filled in by writing, with the marks for them."""
    if cast(PairModel[Any], run.model).marks_gaps and MASK in text and run.tokenizer.sentinels:
        source = SpanFiller(run).source(text, MASK)
        return source[:most], len(source)
    (source,), _ = with_end(run.source_tokenizer, [text], most)
    return source, len(run.source_tokenizer.encode(text)) + 1


def _gaps(run: Run, ids: Ids, states: torch.Tensor) -> dict[str, str]:
    """The likeliest words at each [MASK]."""
    model, tokenizer = run.model, run.tokenizer
    at = np.flatnonzero(ids == (-1 if tokenizer.special.mask is None else tokenizer.special.mask))
    if not len(at) or FillsMasks not in run.model_config.provides:
        return {}
    with torch.inference_mode():
        logits = cast(FillsMasks, model).masked_logits(states[0, torch.as_tensor(at).to(states.device)])
        logits = logits[:, : tokenizer.vocab_size].float()
        logits[:, torch.from_numpy(tokenizer.token_bytes == 0).to(logits.device)] = -torch.inf  # they are no words
        best = logits.softmax(-1).max(-1)
    pairs = zip(token_labels(tokenizer, best.indices.tolist()), best.values.tolist(), strict=True)
    return {"fills in": ", ".join(f"{label} {percent(share)}" for label, share in pairs)}


def _count(name: str, count: int, most: int) -> dict[str, str]:
    tokens = f"{count:,} tokens" if name != "tokens" else f"{count:,}"
    return {name: tokens if count <= most else f"the first {most:,} of {count:,} tokens: more do not fit"}


def _check_not_empty(text: str, count: int) -> None:
    if not text.strip() or count < 1:
        raise DataError("an empty text", expected="a text to look into")
