"""Searches against Hugging Face's: the same texts with the same scores, over ragged sources."""

import pytest
import torch

from fixtures.searches import random_logits, run_search
from weft.generation import SearchConfig, beam_search, greedy

transformers = pytest.importorskip("transformers")


class Theirs:
    """A Hugging Face model as a `Decoding` that reads the whole text anew in each step."""

    def __init__(self, model, tokens, keep):
        self.model, self.keep_mask = model, keep
        self.memory = model.get_encoder()(input_ids=tokens, attention_mask=keep).last_hidden_state
        self.source, self.text = torch.arange(len(tokens)), torch.zeros(len(tokens), 0, dtype=torch.long)

    def step(self, tokens):
        self.text = torch.cat([self.text, tokens[:, None]], 1)
        return self.model(
            encoder_outputs=(self.memory[self.source],),
            attention_mask=self.keep_mask[self.source],
            decoder_input_ids=self.text,
            use_cache=False,
        ).logits[:, -1]

    def select(self, rows):
        self.source, self.text = self.source[rows], self.text[rows]

    def keep(self, sources):
        going = self.source.unique_consecutive()[sources]
        rows = torch.isin(self.source, going)
        self.source, self.text = self.source[rows], self.text[rows]


WIDE = {"d_model": 16, "vocab_size": 50}


@pytest.fixture(scope="module")
def marian():
    torch.manual_seed(13)
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ids = {"pad_token_id": 49, "eos_token_id": 0, "decoder_start_token_id": 49, "forced_eos_token_id": 0}
    model = transformers.MarianMTModel(
        transformers.MarianConfig(**WIDE, **sizes, **heads, **ids, max_position_embeddings=64, init_std=0.5)
    ).eval()
    model.final_logits_bias[0, [0, 49]] = 3.0
    return model, {"end": 0, "suppress": (49,), "end_at_limit": True}, {"bad_words_ids": [[49]]}, 49


@pytest.fixture(scope="module")
def t5():
    torch.manual_seed(3)
    sizes = {"d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(**WIDE, **sizes, decoder_start_token_id=0, tie_word_embeddings=False)
    ).eval()
    torch.nn.init.normal_(model.lm_head.weight, std=0.6)
    model.lm_head.register_forward_hook(lambda module, given, logits: logits + 4.5 * (torch.arange(50) == 1))
    return model, {"end": 1}, {}, 0


def ragged_sources():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(2, 48, (7, 9), generator=generator)
    keep = (torch.arange(9) < torch.tensor([9, 1, 5, 3, 8, 2, 7])[:, None]).long()
    return tokens, keep


def written(row, end, limit):
    """The tokens of one of their rows, without start and end."""
    text = row.tolist()[1 : limit + 1]
    return text[: text.index(end)] if end in text else text


def random_words(source, text):
    """Logits over 50 words; the end (1) becomes likelier with every token."""
    values = random_logits(source, words=50, spread=1.2)(0, text).float()
    values[1] += 0.4 * len(text)
    return values


@pytest.fixture(scope="module")
def function():
    """Their search over a model that is a random function, so that texts branch, end and compete at every length."""

    class Function(transformers.T5ForConditionalGeneration):
        def forward(self, *, attention_mask, decoder_input_ids, **_):
            rows = zip(attention_mask.sum(1).tolist(), decoder_input_ids[:, 1:].tolist(), strict=True)
            logits = torch.stack([random_words(source, tuple(text)) for source, text in rows])
            return transformers.modeling_outputs.Seq2SeqLMOutput(logits=logits[:, None])

    sizes = {"d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1}
    return Function(transformers.T5Config(**WIDE, **sizes, decoder_start_token_id=0)).eval()


def their_beams(model, tokens, keep, beams, alpha, limit, **options):
    """(tokens, score) of the best `beams` texts of each source, by Hugging Face."""
    end = model.config.eos_token_id
    found = model.generate(
        tokens, attention_mask=keep, num_beams=beams, num_return_sequences=beams, length_penalty=alpha,
        early_stopping=False, do_sample=False, max_new_tokens=limit, output_scores=True,
        return_dict_in_generate=True, **options,
    )  # fmt: skip
    return [written(row, end, limit) for row in found.sequences], found.sequences_scores.tolist()


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("beams", [2, 4, 5])
def test_the_search_is_hugging_faces(function, beams, alpha):
    (tokens, keep), limit = ragged_sources(), 10
    texts, scores = their_beams(function, tokens, keep, beams, alpha, limit, use_cache=False)
    config = SearchConfig(beams=beams, best=beams, alpha=alpha, end=1)
    found, decoding = run_search(random_words, keep.sum(1).tolist(), config, [limit] * len(tokens))
    flat = [one for source in found for one in source]
    assert [one.tokens for one in flat] == texts
    assert [one.score for one in flat] == pytest.approx(scores, abs=1e-5)
    assert len({len(one.tokens) for one in flat}) > 2
    assert sum(decoding.read) < len(tokens) * beams * limit or alpha == 2


@pytest.mark.parametrize("family", ["marian", "t5"])
@pytest.mark.parametrize("alpha", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("beams", [2, 4, 5])
def test_the_texts_are_hugging_faces(family, beams, alpha, request):
    model, ours, theirs, start = request.getfixturevalue(family)
    (tokens, keep), limit = ragged_sources(), 12
    config = SearchConfig(beams=beams, best=beams, alpha=alpha, **ours)
    with torch.no_grad():
        texts, scores = their_beams(model, tokens, keep, beams, alpha, limit, **theirs)
        found = beam_search(Theirs(model, tokens, keep), torch.full((7,), start), config, [limit] * 7)
    flat = [one for source in found for one in source]
    assert [one.tokens for one in flat] == texts
    assert [one.score for one in flat] == pytest.approx(scores, abs=1e-5)
    assert {one.ended for one in flat} == {True, False}


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_greedy_texts_are_hugging_faces(family, request):
    model, ours, theirs, start = request.getfixturevalue(family)
    (tokens, keep), limit = ragged_sources(), 12
    options = {"attention_mask": keep, "num_beams": 1, "do_sample": False, "max_new_tokens": limit, **theirs}
    with torch.no_grad():
        wanted = model.generate(tokens, **options)
        found = greedy(Theirs(model, tokens, keep), torch.full((7,), start), SearchConfig(**ours), [limit] * 7)
    assert [one.tokens for one in found] == [written(row, ours["end"], limit) for row in wanted]
    assert {one.ended for one in found} == {True, False}
