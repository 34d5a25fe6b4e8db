"""Break the code on purpose, one thing at a time: some test must fail for each.

python tests/mutations.py            all mutants (about a minute); exit 1 if one survives
python tests/mutations.py rotary     those whose name contains the word
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRITING = [f"tests/generation/test_{name}.py" for name in ("generate", "sampling", "text_stream")]
TESTS = {
    "blocks": [
        *(f"tests/blocks/test_{name}.py" for name in ("bad_input", "cache", "hard", "layer", "numbers", "positions")),
        "tests/blocks/test_unpadded.py",
        "tests/conformance",
        "tests/parity/test_torch.py",
        "tests/analysis/test_attention_maps.py",
    ],
    "patterns": ["tests/blocks/test_sparse_attention.py"],
    "kernels": ["tests/blocks/test_kernel_attention.py"],
    "fits": ["tests/models/test_attention_kinds.py"],
    "drawn": ["tests/analysis/test_patterns.py"],
    "pictured": ["tests/report/test_patterns.py"],
    "typed": ["tests/cli/test_attention.py"],
    "compare": ["tests/compare/test_compare.py"],
    "compared": ["tests/compare/test_page.py", "tests/compare/test_variants.py"],
    "moved": ["tests/training/test_attention_kinds.py"],
    "theory": ["tests/theory/test_claims.py"],
    "generation": WRITING,
    "tasks": ["tests/tasks/test_transfer.py"],
    "loops": ["tests/generation/test_packing.py"],  # these compile for some seconds
    "rows": ["tests/data/test_by_length.py", "tests/objectives/test_classification.py"],
    "spelling": ["tests/data/test_respelling.py", "tests/models/test_bert.py"],
    "classify": ["tests/training/test_classify.py"],
    "fill": ["tests/training/test_fill.py"],
    "t5": ["tests/models/test_t5.py", "tests/parity/test_t5.py"],
    "use": [f"tests/cli/test_{name}.py" for name in ("classify", "fill", "embed")],
    "pairs": ["tests/objectives/test_text_to_text.py", "tests/data/test_by_tokens.py"],
    "memory": ["tests/models/test_transformer.py", "tests/generation/test_sources.py"],
    "search": ["tests/generation/test_search.py"],
    "averaging": ["tests/training/test_averaging.py"],
    "translate": ["tests/training/test_translate.py"],
    "translating": ["tests/cli/test_translate.py"],
    "vit": ["tests/models/test_vit.py", "tests/parity/test_vit.py", "tests/models/test_timm_layouts.py"],
    "davit": ["tests/parity/test_davit.py"],
    "convnext": ["tests/models/test_convnext.py", "tests/parity/test_convnext.py"],
    "resnet": ["tests/models/test_resnet.py"],
    "preprocessing": ["tests/models/test_preprocessing.py"],
    "windows": ["tests/blocks/test_window.py", "tests/blocks/test_hierarchy.py", "tests/blocks/test_channel.py"],
    "kinds": ["tests/conformance/test_attention_kinds.py"],
    "decoding": ["tests/images/test_decode.py", "tests/images/test_arrays.py", "tests/images/test_npz.py"],
    "workers": ["tests/images/test_many.py"],
    "changes": ["tests/images/test_changes.py", "tests/data/test_augmentation.py"],
    "picture files": ["tests/data/test_pictures.py"],
    "pictures": ["tests/training/test_classify_pictures.py"],
    "looking": ["tests/cli/test_classify_pictures.py"],
    "moving": ["tests/tasks/test_picture_transfer.py"],
    "freezing": ["tests/training/test_freezing.py"],
}
PASSED, FAILED = 0, 1  # pytest's exit codes; a mutant that cannot even be imported proves nothing


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    package: str = "blocks"
    suite: str = ""

    @property
    def tests(self) -> list[str]:
        return (
            TESTS[self.suite]
            if self.suite
            else TESTS["loops" if self.file in ("kernels.py", "packing.py") else self.package]
        )


def writing(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, file, old, new, "generation")


def transfer(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(f"transfer: {name}", file, old, new, "tasks")


def grouped(group: str, name: str, path: str, old: str, new: str, suite: str) -> Mutant:
    package, _, file = path.partition("/")
    return Mutant(f"{group}: {name}", file, old, new, package, suite)


reading, translating, looking, seeing = (
    partial(grouped, group) for group in ("reading", "translating", "looking", "seeing")
)
SOFTMAX, BASE, HEADS = "attention/softmax.py", "attention/base.py", "attention/heads.py"
MUTANTS = [
    Mutant("scale: 1/K for 1/√K", SOFTMAX, "1.0 / math.sqrt(query.shape[-1])", "1.0 / query.shape[-1]"),
    Mutant("scale: fused kernel forgets beta", SOFTMAX, "is_causal=causal, scale=beta", "is_causal=causal, scale=None"),
    Mutant("scale: masked kernel forgets beta", SOFTMAX, "dropout_p=dropout, scale=beta", "dropout_p=dropout"),
    Mutant("causal offset: one too far", BASE, "tril(answering - asking)", "tril(answering - asking + 1)"),
    Mutant("causal offset: one too near", BASE, "tril(answering - asking)", "tril(answering - asking - 1)"),
    Mutant("causal offset: top-left", BASE, "tril(answering - asking)", "tril()"),
    Mutant("causal offset: SDPA's flag with a cache", SOFTMAX, "and asking in (1, answering)", "and True"),
    Mutant("causal: the flag is dropped", SOFTMAX, "is_causal=causal", "is_causal=False"),
    Mutant("rotary sign: one half", "position/rotary.py", "first * cos - second * sin", "first * cos + second * sin"),
    Mutant("rotary sign: keys the other way", "position/rotary.py", "_turn(key, cos, sin)", "_turn(key, cos, -sin)"),
    Mutant("rotary: queries only", "position/rotary.py", "_turn(query, cos, sin), _turn(key, cos, sin)",
           "_turn(query, cos, sin), key"),
    Mutant("positions: the cache is forgotten", "cache.py", "0 if cache is None else cache.start", "0"),
    Mutant("positions: padding counts", "cache.py", "start + (keep.cumsum(1) - 1).clamp(min=0)",
           "start + torch.arange(count, device=device) + 0 * keep"),
    Mutant("padding: keep is not applied", BASE, "parts.append(self.keep[:, None, None, :])", "pass"),
    Mutant("padding: garbage is not cleared", HEADS, "x = x.masked_fill(padding, 0.0)", "pass"),
    Mutant("padding: garbage in the memory", HEADS, "memory = memory.masked_fill(padding, 0.0)", "pass"),
    Mutant("padding: garbage in weft.attention", "attention/functional.py",
           "key, value = key.masked_fill(padding, 0.0), value.masked_fill(padding, 0.0)", "pass"),
    Mutant("padding: forgotten by the cache", "cache.py", "else keep\n        self._keep", "else keep | True\n        self._keep"),
    Mutant("fully masked row: opened and not cleared", SOFTMAX, "heads if empty is None else heads.masked_fill(empty, 0.0)",
           "heads"),
    Mutant("fully masked row: explicit path, NaN", SOFTMAX, "~allowed & allowed.any(-1, keepdim=True)", "~allowed"),
    Mutant("fully masked row: explicit path, not cleared", SOFTMAX, ".softmax(-1).masked_fill(~allowed, 0.0)",
           ".softmax(-1)"),
    Mutant("fully masked row: hard", "attention/hard.py",
           "chosen = chosen.masked_fill(~allowed.any(-1, keepdim=True), 0.0)", "pass"),
    Mutant("bias: dropped by the fused path", SOFTMAX, "(None if mask.bias is None else finite(mask.bias, like.dtype)), None",
           "None, None"),
    Mutant("bias: −∞ does not forbid", BASE, "parts.append(self.bias != -torch.inf)", "pass"),
    Mutant("bias: a cast makes it forbid", SOFTMAX, "bias.clamp(limits.min, limits.max).to(dtype)", "bias.to(dtype)"),
    Mutant("maps: the wrong weights are shown", SOFTMAX, "return softargmax(scores, beta, mask",
           "return softargmax(scores, 1.01 * beta, mask"),
    Mutant("maps: half precision products", SOFTMAX, "wide(query) @ wide(spread(key, query.shape[1]))", "query @ spread(key, query.shape[1])"),
    Mutant("cache: written into while autograd holds it", "cache.py", "        if torch.is_grad_enabled():\n            self._key = key if", "        if key.requires_grad:\n            self._key = key if"),
    Mutant("cache: filled before the mask is checked", BASE, "mask.check(query.shape[0], query.shape[1], query.shape[2], answering, ignore_keep=True)", "pass"),
    Mutant("cache: the memory is read every time", HEADS, "if memory is not None and isinstance(cache, MemoryCache) and cache.length:", "if False:"),
    Mutant("padding: garbage in a stack", "layer.py", "x = x.masked_fill(~mask.keep[..., None], 0.0)", "pass"),
    Mutant("heads: key/value heads in the wrong order", BASE, "kv.repeat_interleave(heads // groups, dim=1)",
           "kv.repeat(1, heads // groups, 1, 1)"),
    Mutant("cross-attention reads itself", HEADS, "source = x if memory is None else memory\n        return",
           "source = x\n        return"),
    Mutant("hard: worst instead of best", "attention/hard.py", "(scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).argmax(-1)",
           "(scores if allowed is None else scores.masked_fill(~allowed, torch.inf)).argmin(-1)"),
    Mutant("hard: gradient through the choice is lost", "attention/hard.py", "(soft - soft.detach())",
           "(soft.detach() - soft.detach())"),
    Mutant("cache: rewinding forgets one too few", "cache.py", "kept.cumsum(1) <= limit", "kept.cumsum(1) <= limit + 1"),
    Mutant("cache: growth loses what was there", "cache.py", "self._key[:, :, : self.length] = old_key", "pass"),
    Mutant("pre-norm without its residual", "residual.py", "x + self.dropout(branch(self.norm(x)))",
           "self.dropout(branch(self.norm(x)))"),
    Mutant("post-norm before the branch", "residual.py", "self.norm(x + self.dropout(branch(x)))",
           "x + self.dropout(branch(self.norm(x)))"),
    Mutant("ALiBi rewards distance", "position/alibi.py", "return -slope", "return slope"),
    Mutant("relative: ahead and behind swapped", "position/relative.py", "(ahead > 0) * buckets", "(ahead < 0) * buckets"),
    Mutant("sinusoids: sine and cosine swapped", "position/sinusoidal.py", "torch.stack([angles.sin(), angles.cos()]",
           "torch.stack([angles.cos(), angles.sin()]"),
    Mutant("RMS norm takes the sum", "norm.py", "square().mean(-1", "square().sum(-1"),
    Mutant("unpadded: positions of the row", "unpadded.py",
           "torch.cat([torch.arange(n, device=device) for n in self.lengths])", "torch.arange(self.total, device=device)"),
    Mutant("unpadded: texts are not cut", HEADS, "for start, count, length in unpadded.runs():",
           "for start, count, length in [(0, 1, unpadded.total)]:"),
    Mutant("unpadded: the bias of the last positions", BASE, "bias = None if self.bias is None else self.bias[..., *cut]",
           "bias = None if self.bias is None else self.bias[..., -length:, -length:]"),
    Mutant("unpadded: a kind may ignore it", BASE, "self.bias is None and self.unpadded is None", "self.bias is None"),
    Mutant("unpadded: runs overlap", "unpadded.py", "start += count * length", "start += length"),
    writing("window: one token too many", "context.py", "-(-(count - context) // step) * step", "(count - context) // step * step"),
    writing("window: never moves the caches", "context.py", "window_start(len(row), self.model.context) != start", "False"),
    writing("window: steps of a whole context", "context.py", "max(1, context // 2)", "context"),
    writing("ragged prompts: padding is read", "context.py", "ragged = bool((lengths < longest).any())", "ragged = False"),
    writing("rows that go on keep the wrong caches", "context.py", "cache.select(index)", "pass"),
    writing("top-p: one token too few", "sampling.py", "outside = before >= top_p", "outside = before + shares >= top_p"),
    writing("top-p: the first look is enough", "sampling.py", "if bool(((found.logits - whole).exp().sum(-1) >= top_p).all()):", "if True:"),
    writing("min-p: of all probability", "sampling.py", "found.logits.amax(-1, keepdim=True) + np.log", "found.logits.logsumexp(-1, keepdim=True) + np.log"),
    writing("penalty rewards what is negative", "sampling.py", "values * penalty", "values / penalty"),
    writing("temperature multiplies", "sampling.py", "/ (settings.temperature or 1.0)", "* (settings.temperature or 1.0)"),
    writing("samples share their numbers", "generate.py", "default_rng([config.seed, sample.number])", "default_rng([config.seed, 0])"),
    writing("tokens beyond the tokenizer", "generate.py", "reading.logits[:, : tokenizer.vocab_size].float()", "reading.logits.float()"),
    writing("stop strings are shown in part", "text_stream.py", "cut = len(self._held) - kept", "cut = len(self._held)"),
    writing("half characters are shown", "text_stream.py", "return self._decoder.decode(self.tokenizer.decode_bytes([token]))", "return self.tokenizer.decode([token])"),
    writing("int8: scales are forgotten", "packing.py", ".mul_(torch.from_numpy(self.scales)[:, None])", ""),
    writing("loops forget the bias", "kernels.py", "out[i] = total * scale[i] + bias[i]", "out[i] = total * scale[i]"),
    writing("loop of several rows: the last ones", "kernels.py", "(rows + 5) // 6", "rows // 6"),
    writing("loop of several rows: the odd one", "kernels.py", "(count + 1) // 2", "count // 2"),
    writing("loop of attention: the wrong head", "kernels.py", "group = head // share", "group = head % groups"),
    writing("loop of attention: one key too few", "kernels.py", "for s in range(length):\n            weight", "for s in range(length - 1):\n            weight"),
    transfer("bits are not compared", "certificate.py", "if different:", "if False:"),
    transfer("settings are not compared", "certificate.py", "if folder.layout.settings(folder.config) != folder.layout.settings(config):", "if False:"),
    transfer("any difference will do", "certificate.py", "if not apart <= TOLERANCE", "if not apart <= 1e9 + TOLERANCE"),
    transfer("heads may differ in size only", "certificate.py", "for name, values in ours.items():\n        apart", "for name, values in list(ours.items())[:1]:\n        apart"),
    transfer("segments are all alike", "probes.py", "(places * config.segments // lengths).clamp(max=config.segments - 1)", "(0 * places * lengths)"),
    transfer("no padding", "probes.py", "self.keep = places < lengths", "self.keep = places < 99 + lengths"),
    transfer("pairs are not compared", "probes.py", "(_compare_pairs(ours, theirs) if reads else {})", "{}"),
    transfer("special tokens are not compared", "probes.py", 'if role == "end" or expected is not None:', "if False:"),
    transfer("a trunk is said to fill", "purpose.py", 'isinstance(config.head, MaskedConfig) else "read"', 'isinstance(config.head, MaskedConfig) else "fill"'),
    reading("batches do not know where the epoch began", "data/by_length.py", "rest = -epoch * count % self.batch", "rest = 0", "rows"),
    reading("the same order in every epoch", "data/by_length.py", "Shuffle(count, self.seed, epoch)", "Shuffle(count, self.seed, 0)", "rows"),
    reading("every word is spelled otherwise", "data/respelling.py", "(unit(drawn) < share)", "(unit(drawn) < 1)", "spelling"),
    reading("spellings by the place in the batch", "data/respelling.py", "np.arange(len(ids)) - starts[texts]", "np.arange(len(ids))", "spelling"),
    reading("padding is averaged", "models/bert.py", "hidden.masked_fill(~keep[..., None], 0).sum(1)", "hidden.sum(1)", "spelling"),
    reading("lengths are not looked at", "data/by_length.py", "np.argsort(self.lengths[pool], kind=\"stable\")", "np.arange(len(pool))", "rows"),
    reading("marks are hidden too", "objectives/classification.py", "chosen &= ~torch.isin(row.tokens, self.whole.to(row.tokens.device))", "pass", "rows"),
    reading("words are hidden when it is used", "objectives/classification.py", "self.with_gaps(batch.row) if model.training else batch.row", "self.with_gaps(batch.row)", "rows"),
    reading("classes weigh alike", "objectives/classification.py", "(each * (weights[labels] if labels.dim() == 1 else labels @ weights)).sum()", "each.sum()", "rows"),
    reading("a mean for a sum", "objectives/classification.py", "(logits[:, 0] - labels.float()).square().sum()", "(logits[:, 0] - labels.float()).square().mean()", "rows"),
    reading("duplicates on both sides", "tasks/tables.py", "seed=0, groups=everything.keys()", "seed=0", "classify"),
    reading("a changed table is read on with", "tasks/tables.py", "if recorded.fingerprint == found.fingerprint:", "if True:", "classify"),
    reading("the temperature is forgotten", "tasks/answers.py", "(1 / _temperature(run / CALIBRATION), 0.0)", "(1.0, 0.0)", "classify"),
    reading("numbers without their mean", "tasks/answers.py", "(data.deviation, data.mean)", "(data.deviation, 0.0)", "classify"),
    reading("other classes keep the head", "tasks/start.py", "if not name.startswith(\"classes.\")}", "if True}", "classify"),
    reading("the length is not recorded", "tasks/classify.py", "data=tables.config.override({\"length\": length})", "data=tables.config", "classify"),
    reading("held-out text by the seed of training", "tasks/fill_training.py", "self.made_from(part, JUDGED_SEED)", "self.made_from(part, self.config.training.seed)", "fill"),
    reading("pairs may change", "tasks/fill.py", "if config.data.fingerprint.partition(\"|\")[2] != source.config.fingerprint.partition(\"|\")[2]:", "if False:", "fill"),
    reading("processes name different parts", "objectives/pretraining.py", "asked = {name: row.questions.get(name, none) for name in config.questions}", "asked = row.questions", "fill"),
    reading("sums of parts are not shared", "training/sums.py", "self.parts = {name: sums[2 + 3 * n : 5 + 3 * n].tolist() for n, name in enumerate(names)}", "pass", "fill"),
    reading("the truth is overwritten", "cli/classify.py", "_free(said if name == \"label\" else name, title): value", "name: value", "use"),
    reading("texts in another order", "tasks/judging.py", "found[places] = logits", "found[sorted(places)] = logits", "use"),
    reading("a file is written over", "cli/streams.py", "file = open_file(path, \"x\")", "file = Path(path).open(\"w\")", "use"),
    reading("marks count in the mean", "tasks/embedding.py", "marks = 0 if isinstance(self.model, GPT) else 1", "marks = 0", "use"),
    reading("the rest of a long text is left out", "tasks/embedding.py", "for start in range(0, max(1, len(ids)), step):", "for start in range(0, 1, step):", "use"),
    reading("special tokens as candidates", "tasks/filling.py", "logits[:, self._special_ids()] = -torch.inf", "pass", "use"),
    reading("T5: states are not divided", "models/t5.py", "config.width**-0.5 if config.tied is True else 1.0,", "1.0,", "t5"),
    reading("T5: a head of its own is divided too", "models/t5.py", "if config.tied is True else 1.0,", "if config.tied is not None else 1.0,", "t5"),
    reading("T5: writing tells ahead from behind", "models/t5.py", '{"two_way": not writes}', '{"two_way": True}', "t5"),
    reading("T5: last states are not dropped", "models/t5.py", "        dropout=config.dropout,\n    )\n\n\ndef _layer", "    )\n\n\ndef _layer", "t5"),
    reading("T5: queries begin large", "models/t5.py", "head_width if name.endswith", "1 if name.endswith", "t5"),
    reading("T5: positions are forgotten in queries", "models/t5.py", "qk=position.qk", "qk=None", "t5"),
    reading("T5: gate and up are exchanged", "models/t5_layouts.py", '{"wi_0": "gate", "wi_1": "up"}', '{"wi_0": "up", "wi_1": "gate"}', "t5"),
    reading("T5: the inner word is not looked at", "models/t5_layouts.py", 'activation = theirs.word("dense_act_fn", ACTIVATIONS)', "pass", "t5"),
    reading("T5: any head is tied", "models/t5_layouts.py", 'config.tied == "unscaled" and HEAD in set(names())', "False", "t5"),
    reading("T5: a tied head is divided always", "models/t5_layouts.py", 'theirs.flag("scale_decoder_outputs", ties)', "ties", "t5"),
    reading("T5: copies are not compared", "models/t5_layouts.py", "Tied(name, tokens) for name", "Ignored(name) for name", "t5"),
    reading("T5: the start is forgotten", "models/t5_layouts.py", '"decoder_start_token_id": config.start', '"decoder_start_token_id": 0', "t5"),
    translating("labels are not shifted", "objectives/text_to_text.py", "torch.cat([torch.full((len(wanted), 1), start), wanted[:, :-1]], 1)", "wanted", "pairs"),
    translating("smoothing is dropped", "objectives/text_to_text.py", "label_smoothing=self.smoothing", "label_smoothing=0.0", "pairs"),
    translating("the same bunches in every epoch", "data/by_tokens.py", 'f"pairs of epoch {epoch}"', '"pairs"', "pairs"),
    translating("bunches in the same order in every epoch", "data/by_tokens.py", "Shuffle(self.per_epoch, mixed(self.seed, 1), epoch)", "Shuffle(self.per_epoch, mixed(self.seed, 1), 0)", "pairs"),
    translating("spelled alike in every epoch", "tasks/encoded_pairs.py", "sample = places + epochs * len(pairs)", "sample = places", "translate"),
    translating("a text without its end", "tasks/encoded_pairs.py", "np.append(ids[: longest - 1], tokenizer.end).astype", "np.array(ids[:longest]).astype", "translate"),
    translating("the test is greedy", "tasks/translate.py", 'THOROUGH if part == "test" else GREEDY', "GREEDY", "translate"),
    translating("changed pairs are read on with", "tasks/pair_tables.py", "if recorded.fingerprint == found.fingerprint:", "if True:", "translate"),
    translating("sides share the check of a vocabulary", "tasks/flow.py", 'prepared.tokenizer, "the plan", prepared.source_tokenizer)', 'prepared.tokenizer, "the plan")', "translate"),
    translating("the mean stays in the model", "training/averaging.py", "p.copy_(now[name])", "pass", "averaging"),
    translating("only the last weights are averaged", "training/averaging.py", "[*self.kept, now][-self.count :]", "[now]", "averaging"),
    translating("averaged weights are not taken up", "training/resume.py", 'trainer.averaging.restore(checkpoint.tensors.get("average", {}))', "pass", "translate"),
    translating("the loss decides", "training/trainer.py", '-loss if self.decides == "validation_loss" else metrics[self.decides]', "-loss", "averaging"),
    translating("ties are not broken", "training/trainer.py", "(goal == progress.goal and loss < progress.best)", "False", "averaging"),
    translating("the schedule is not heard", "training/trainer.py", 'inverse_sqrt=settings.schedule == "inverse-sqrt"', "inverse_sqrt=False", "translate"),
    translating("the rate falls as 1/step", "training/schedule.py", "math.sqrt(self.warmup / so_far)", "self.warmup / so_far", "averaging"),
    translating("the mask of the memory is dropped", "models/encoder_decoder.py", "memory_mask=Mask(keep=memory.keep)", "memory_mask=Mask()", "memory"),
    translating("joint: positions count the memory", "blocks/cache.py", "return self.length - self.remembered if written is None", "return self.length if written is None", "memory"),
    translating("beams look at another's source", "blocks/attention/heads.py", "query.view(-1, readers, *query.shape[1:]).transpose(1, 2)", "query.view(readers, -1, *query.shape[1:]).transpose(0, 1).transpose(1, 2)", "memory"),
    translating("memories of those who left stay", "generation/sources.py", "select_sources(self.caches, sources)", "pass", "memory"),
    translating("texts in another order", "generation/text_to_text.py", "zip(places, texts, strict=True)", "zip(sorted(places), texts, strict=True)", "memory"),
    translating("alpha is ignored", "generation/beams.py", "divisor = (self.tokens.shape[2] + 1) ** self.settings.alpha", "divisor = 1.0", "search"),
    translating("what is suppressed is written", "generation/likeliest.py", "if suppress:", "if False:", "search"),
    translating("draws are one", "tasks/translating.py", "samples=self.best", "samples=1", "translating"),
    translating("the joint table looks at itself", "tasks/alignment.py", "weights[:, : len(source)]", "weights[:, -len(source) :]", "translating"),
    translating("letters stand there as often as they have bytes", "tasks/alignment.py", 'if tokenizer.kind in ("other", "wordpiece"):', "if True:", "translating"),
    looking("a shifted window begins on the wrong side", "blocks/attention/window.py", "return -down % height, -right % width", "return down % height, right % width", "windows"),
    looking("padding of a window is seen", "blocks/attention/window.py", "Mask(causal=mask.causal, keep=real)", "Mask(causal=mask.causal)", "windows"),
    looking("windows count from the wrong end", "blocks/attention/window.py", "own[..., -asking:, None]", "own[..., :asking, None]", "kinds"),
    looking("summaries read padding", "blocks/attention/hierarchy.py", "inverse_temperature(self.beta, key), allowed)", "inverse_temperature(self.beta, key))", "windows"),
    looking("channels are weighed the wrong way round", "blocks/attention/channel.py", "@ table.transpose(2, 3)", "@ table", "windows"),
    looking("a kind without memory reads one", "blocks/attention/heads.py", "if not self.lookup.reads_memory:", "if self.lookup.reads_memory is None:", "windows"),
    looking("windows of DaViT see no filling", "models/davit.py", "whole = filled(as_map(h, grid), self.window)", "whole = filled(as_map(h, grid), 1)", "davit"),
    looking("timm's channel maps by their names", "models/davit_layouts.py", '("value", "query", "key")', '("query", "key", "value")', "davit"),
    looking("ConvNeXt is normed before the mean", "models/convnext.py", "return self.norm(states.mean(1))", "return self.norm(states).mean(1)", "convnext"),
    looking("the last norm has the others' eps", "models/convnext.py", "eps=config.eps if config.last_eps is None else config.last_eps", "eps=config.eps", "convnext"),
    looking("a shortcut skips its norm", "models/resnet.py", "self.shortcut(ready)", "self.shortcut(x)", "resnet"),
    looking("ResNet depends on the company", "models/resnet.py", "self.norm = nn.GroupNorm(config.groups, config.width)", "self.norm = nn.BatchNorm2d(config.width)", "resnet"),
    looking("timm's query is our key", "models/timm_layouts.py", 'for name in ("query", "key", "value"))', 'for name in ("key", "query", "value"))', "vit"),
    looking("timm's unknown settings are ignored", "models/timm_layouts.py", "            if word not in self.arguments:", "            if False:", "vit"),
    looking("the pooler of a ViT is lost", "models/vit_layouts.py", "PictureHead(hidden=config.head.hidden if pooled else 0)", "PictureHead()", "vit"),
    looking("the cut of a picture is not told", "models/preprocessing.py", 'about["crop_pct"] = given.crop', "pass", "preprocessing"),
    looking("positions are not stretched", "models/vit.py", "x + stretched(table[1:], self.config.cells, cells)", "x + table[1 : 1 + x.shape[1]]", "vit"),
    looking("another patch than the class token is read", "models/vit.py", "if self.class_token is None else states[:, 0]", "if self.class_token is None else states[:, 1]", "vit"),
    looking("the camera was held the other way", "images/decode.py", '6: "ROTATE_270",', '6: "ROTATE_90",', "decoding"),
    looking("a bomb is unpacked", "images/decode.py", "if width * height > MOST_PIXELS:", "if False:", "decoding"),
    looking("what is transparent is black", "images/decode.py", 'coloured.size, "white")', 'coloured.size, "black")', "decoding"),
    looking("16 bits are clipped", "images/arrays.py", "(piece.astype(np.uint32) * 255 + 32767) // 65535", "piece.clip(0, 255)", "decoding"),
    looking("an archive holds more than it says", "images/npz.py", "if needed + header != info.file_size:", "if False:", "decoding"),
    looking("workers run the caller's script", "images/many.py", 'sys.modules["__main__"] = ModuleType("__main__")', "pass", "workers"),
    looking("pictures are not sampled where they are", "images/changes.py", 'padding_mode="border", align_corners=False', 'padding_mode="border", align_corners=True', "changes"),
    looking("a pasted piece leaves the label", "images/changes.py", "1 - box.float().mean(dim=(1, 2, 3))", "1 - 0 * box.float().mean(dim=(1, 2, 3))", "changes"),
    looking("the same change in every epoch", "data/augmentation.py", "drawn = self.chance.of(numbers, purpose)[:, None]", "drawn = self.chance.of(np.asarray(numbers) % 16, purpose)[:, None]", "changes"),
    looking("digits are mirrored", "data/augmentation.py", ">= KEPT * right(seen)", ">= 0 * right(seen)", "changes"),
    looking("any number of broken pictures is left out", "data/pictures.py", "if len(problems) > TOLERATED * len(found):", "if False:", "picture files"),
    looking("texts with a picture are pictures", "data/picture_files.py", "return deep > texts if texts else deep + flat > 0", "return deep + flat > 0", "picture files"),
    looking("changed pictures are gone on with", "tasks/picture_data.py", "if recorded.fingerprint == found.fingerprint:", "if True:", "pictures"),
    looking("a broken picture ends well", "cli/classify_pictures.py", "        if self.failed:", "        if False:", "looking"),
    looking("a border is rounded", "images/arrays.py", "edge = int(size / self.crop)", "edge = round(size / self.crop)", "moving"),
    looking("a corner is cut out", "images/decode.py", "down, right = (rows - size) // 2, (columns - size) // 2", "down, right = 0, 0", "moving"),
    looking("the form that a model knows is measured anew", "tasks/picture_data.py", "    if not mean:", "    if True:", "moving"),
    looking("the form of a start is left behind", "tasks/classify_pictures.py", "getattr(start.pictures, name) for name in FORM}", "getattr(start.pictures, name) for name in FORM[:2]}", "moving"),
    looking("a stage is counted as a layer", "training/freezing.py", 'places[name] = (int(match["stage"]), 0)', 'places[name] = (int(match["stage"]), 1)', "freezing"),
    looking("pixels of an export are not compared", "tasks/certificate.py", "if folder.preprocessing != exported.preprocessing:", "if False:", "moving"),
    looking("an import forgets its pixels", "tasks/transfer.py", 'origin["preprocessing"] = prepared.to_dict()', "pass", "moving"),
    seeing("a window is one too wide", "blocks/attention/local.py", "return (query - key).abs() < self.window", "return (query - key).abs() <= self.window", "patterns"),
    seeing("a tile has too few keys", "blocks/attention/local.py", "slice(max(0, start - self.window + 1), last)", "slice(max(0, start - self.window + 2), last)", "patterns"),
    seeing("pairs of two parts count twice", "blocks/attention/pattern.py", "allowed = allowed & ~other.sees(asking, answering)", "pass", "patterns"),
    seeing("tiles look ahead", "blocks/attention/pattern.py", "allowed = allowed & (answering <= asking)", "pass", "patterns"),
    seeing("padding is not moved behind", "blocks/attention/pattern.py", "return (~keep).to(torch.uint8).argsort(dim=1, stable=True)", "return torch.arange(keep.shape[1], device=keep.device).expand(len(keep), -1)", "patterns"),
    seeing("the running softmax does not fade", "blocks/attention/tiles.py", "found[:, :, asking] * old + received * new", "found[:, :, asking] + received * new", "patterns"),
    seeing("backward forgets the temperature", "blocks/attention/tiles.py", ".mul_(weights).mul_(tiling.beta)", ".mul_(weights)", "patterns"),
    seeing("backward drops others", "blocks/attention/tiles.py", "to_value = tiling.dropped(weights, number).mT", "to_value = tiling.dropped(weights, number + 1).mT", "patterns"),
    seeing("too much is forgotten", "blocks/cache.py", "dropped = self.length - self.reach - self.SPARE", "dropped = self.length - self.reach + 2", "patterns"),
    seeing("forgotten tokens do not count", "blocks/cache.py", "return super().start + self.forgotten", "return super().start", "patterns"),
    seeing("what is forgotten is rewound to", "blocks/cache.py", "(left < self.reach - 1)).any()", "(left < -1)).any()", "patterns"),
    seeing("ragged rows have no room", "blocks/cache.py", "room = max(self._most(self.reach), left.shape[2] + self.SPARE)", "room = self._most(self.reach)", "patterns"),
    seeing("scores are rounded first", "blocks/attention/tiles.py", "torch.matmul(wide(query) * self.beta, wide(key).mT)", "(torch.matmul(query, key.mT) * self.beta).float()", "patterns"),
    seeing("directions learn", "models/base.py", "nn.Parameter(weights[name], requires_grad=p.requires_grad)", "nn.Parameter(weights[name])", "fits"),
    seeing("learned tokens read padding", "blocks/attention/pattern.py", "key, Mask(keep=mask.keep))", "key, Mask())", "patterns"),
    seeing("a picture is a row", "blocks/attention/local.py", "columns = query % self.columns - key % self.columns", "columns = 0 * query - 0 * key", "patterns"),
    seeing("chunks do not know the past", "blocks/attention/kernel.py", "start = torch.zeros_like(sums[:, :, :1]) if before is None else before.table[:, :, None]", "start = torch.zeros_like(sums[:, :, :1])", "kernels"),
    seeing("a chunk looks ahead", "blocks/attention/kernel.py", "found = here.tril() @", "found = here @", "kernels"),
    seeing("sums do not fade", "blocks/attention/kernel.py", "states[-1], fade[:, :, number, None, None]", "states[-1], torch.ones_like(fade[:, :, number, None, None])", "kernels"),
    seeing("the past is not scaled", "blocks/attention/kernel.py", "past=(ends[:, :, :-1, None] - own).exp(),", "past=torch.ones_like(own),", "kernels"),
    seeing("padding is summed", "blocks/attention/kernel.py", "features = features.masked_fill(~real[:, None, :, None], 0.0)", "pass", "kernels"),
    seeing("features are biased", "blocks/attention/random_features.py", "- scaled.square().sum(-1, keepdim=True) / 2", "- scaled.square().sum(-1, keepdim=True) / 3", "kernels"),
    seeing("directions are not normal", "blocks/attention/random_features.py", "(square * lengths[:, None])[: count - first]", "(square * width**0.5)[: count - first]", "kernels"),
    seeing("a temperature is taken twice", "blocks/attention/random_features.py", "inverse_temperature(self.beta, x) ** 0.5", "inverse_temperature(self.beta, x)", "kernels"),
    seeing("features are redrawn in use", "blocks/attention/random_features.py", "if self.calls is not None and self.training:", "if self.calls is not None:", "kernels"),
    seeing("a memory is summed again", "blocks/attention/heads.py", "if memory is not None and isinstance(cache, MemoryCache) and cache.length:", "if memory is not None and isinstance(cache, KeyValueCache) and cache.length:", "kernels"),
    seeing("every layer is the first", "blocks/attention/alternating.py", "turn, place = divmod(number, len(self.of))", "turn, place = 0, 0", "fits"),
    seeing("a kind loses its heads", "blocks/attention/alternating.py", "layer = chosen.override(shared).for_layer(turn)", "layer = chosen.for_layer(turn)", "fits"),
    seeing("a model that writes looks ahead", "models/attention_fits.py", "if writes and not attention.writes:", "if False:", "fits"),
    seeing("a memory is read by places", "models/transformer.py", "attention.for_memory().build(config.width, qk=qk_norm())", "attention.build(config.width, qk=qk_norm())", "fits"),
    seeing("directions are drawn over", "models/gpt.py", '"norm" in name or ".lookup." in name:', '"norm" in name:', "fits"),
    seeing("askers are drawn as answerers", "analysis/patterns.py", "torch.cat(changed).T.numpy()", "torch.cat(changed).numpy()", "drawn"),
    seeing("a choice is not known to be one draw", "analysis/patterns.py", "_known(_sides(here, length, seed + 1))", "_known(_sides(here, length, seed))", "drawn"),
    seeing("a leak is drawn as future", "report/patterns.py", "np.triu(np.ones_like(seen), 1) & ~seen", "np.triu(np.ones_like(seen), 1)", "pictured"),
    seeing("half blocks are upside down", "cli/attention.py", "for upper, lower in zip(cells[::2], cells[1::2], strict=True)", "for lower, upper in zip(cells[::2], cells[1::2], strict=True)", "typed"),
    seeing("sizes are planned anew for each", "compare/planning.py", "_with(request.recipe, self.shared | (known or {}))", "_with(request.recipe, self.shared)", "compare"),
    seeing("each has a tokenizer of its own", "compare/planning.py", "if config.tokenizer is not None and not any(", "if False and not any(", "compare"),
    seeing("other data are compared", "compare/child.py", 'if run.read_config()["data"]["fingerprint"] != order.fingerprint:', "if False:", "compare"),
    seeing("a finished run is trained again", "compare/session.py", 'return bool(order.reason) or read_outcome(self.folder(order)).get("done") is True', "return bool(order.reason)", "compare"),
    seeing("the worst is best", "compare/rows.py", "sign = -1 if METRICS[metric] else 1", "sign = 1", "compared"),
    seeing("two variants share a folder", "compare/variants.py", "while name.casefold() in taken:", "while name in taken:", "compared"),
    seeing("theory: the document is always right", "theory/claim.py", "return self.document is None or self.document.agrees(self.measured)", "return True", "theory"),
    seeing("theory: nothing is ever broken", "theory/claim.py", "return self.right.agrees(self.measured)", "return True", "theory"),
    seeing("theory: a page believes its claims", "theory/page.py", "{html.escape(claim.says)}", "{claim.says}", "theory"),
    seeing("theory: additions count", "theory/counting.py", "found[kind] += flops // 2", "found[kind] += flops", "theory"),
    seeing("theory: chance is not put back", "theory/claim.py", "with torch.random.fork_rng(devices=[]), torch.enable_grad():", "with torch.enable_grad():", "theory"),
    seeing("what a kind has of its own is looked for", "tasks/start.py", 'or ".lookup." in name', "or False", "moved"),
]  # fmt: skip


def pytest_exit_code(source: Path, tests: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    env = os.environ | {
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(source / "numba"),
    }
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False).returncode


def copied(folder: str) -> Path:
    source = Path(folder) / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    return source


def try_suite(name: str) -> str:
    """All tests must pass on a plain copy: 'passed', or that they do not."""
    with tempfile.TemporaryDirectory() as folder:
        return "passed" if pytest_exit_code(copied(folder), TESTS[name]) == PASSED else "FAILED"


def try_mutant(mutant: Mutant) -> str:
    """'killed', or what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        source = copied(folder)
        path = source / "weft" / mutant.package / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return f"STALE: its line stands {text.count(mutant.old)} times in {mutant.file}"
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        code = pytest_exit_code(source, mutant.tests)
    return "killed" if code == FAILED else "SURVIVED" if code == PASSED else f"BROKEN (pytest exit code {code})"


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [mutant for mutant in MUTANTS if word in mutant.name]
    suites = [name for name, tests in TESTS.items() if any(mutant.tests == tests for mutant in chosen)]
    with ThreadPoolExecutor(2) as pool:
        plain, verdicts = pool.map(try_suite, suites), list(pool.map(try_mutant, chosen))
    failed = [name for name, verdict in zip(suites, plain, strict=True) if verdict != "passed"]
    if failed:
        print(f"tests do not pass on the code as it is, so nothing is said about mutants: {', '.join(failed)}")
        return 1
    for mutant, verdict in zip(chosen, verdicts, strict=True):
        print(f"{verdict:<10} {mutant.name}")
    killed = verdicts.count("killed")
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) and chosen else 1


if __name__ == "__main__":
    sys.exit(main())
