"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

GENERATION = [
    "tests/generation/test_generate.py",
    "tests/generation/test_sampling.py",
    "tests/generation/test_text_stream.py",
]
LOOPS = ["tests/generation/test_packing.py"]
SEARCH = ["tests/generation/test_search.py"]

MUTANTS = [
    Mutant(
        "window: one token too many",
        "generation/context.py",
        old="-(-(count - context) // step) * step",
        new="(count - context) // step * step",
        tests=GENERATION,
    ),
    Mutant(
        "window: never moves the caches",
        "generation/context.py",
        old="window_start(len(row), self.model.context) != start",
        new="False",
        tests=GENERATION,
    ),
    Mutant(
        "window: steps of a whole context",
        "generation/context.py",
        old="max(1, context // 2)",
        new="context",
        tests=GENERATION,
    ),
    Mutant(
        "ragged prompts: padding is read",
        "generation/context.py",
        old="ragged = bool((lengths < longest).any())",
        new="ragged = False",
        tests=GENERATION,
    ),
    Mutant(
        "rows that go on keep the wrong caches",
        "generation/context.py",
        old="cache.select(index)",
        new="pass",
        tests=GENERATION,
    ),
    Mutant(
        "top-p: one token too few",
        "generation/sampling.py",
        old="outside = before >= top_p",
        new="outside = before + shares >= top_p",
        tests=GENERATION,
    ),
    Mutant(
        "top-p: the first look is enough",
        "generation/sampling.py",
        old="if bool(((found.logits - whole).exp().sum(-1) >= top_p).all()):",
        new="if True:",
        tests=GENERATION,
    ),
    Mutant(
        "min-p: of all probability",
        "generation/sampling.py",
        old="found.logits.amax(-1, keepdim=True) + np.log",
        new="found.logits.logsumexp(-1, keepdim=True) + np.log",
        tests=GENERATION,
    ),
    Mutant(
        "penalty rewards what is negative",
        "generation/sampling.py",
        old="values * penalty",
        new="values / penalty",
        tests=GENERATION,
    ),
    Mutant(
        "temperature multiplies",
        "generation/sampling.py",
        old="/ (settings.temperature or 1.0)",
        new="* (settings.temperature or 1.0)",
        tests=GENERATION,
    ),
    Mutant(
        "samples share their numbers",
        "generation/generate.py",
        old="default_rng([config.seed, sample.number])",
        new="default_rng([config.seed, 0])",
        tests=GENERATION,
    ),
    Mutant(
        "tokens beyond the tokenizer",
        "generation/generate.py",
        old="reading.logits[:, : tokenizer.vocab_size].float()",
        new="reading.logits.float()",
        tests=GENERATION,
    ),
    Mutant(
        "stop strings are shown in part",
        "generation/text_stream.py",
        old="cut = len(self._held) - kept",
        new="cut = len(self._held)",
        tests=GENERATION,
    ),
    Mutant(
        "half characters are shown",
        "generation/text_stream.py",
        old="return self._decoder.decode(self.tokenizer.decode_bytes([token]))",
        new="return self.tokenizer.decode([token])",
        tests=GENERATION,
    ),
    Mutant(
        "int8: scales are forgotten",
        "generation/packing.py",
        old=".mul_(torch.from_numpy(self.scales)[:, None])",
        new="",
        tests=LOOPS,
    ),
    Mutant(
        "loops forget the bias",
        "generation/kernels.py",
        old="out[i] = total * scale[i] + bias[i]",
        new="out[i] = total * scale[i]",
        tests=LOOPS,
    ),
    Mutant(
        "loop of several rows: the last ones",
        "generation/kernels.py",
        old="(rows + 5) // 6",
        new="rows // 6",
        tests=LOOPS,
    ),
    Mutant(
        "loop of several rows: the odd one",
        "generation/kernels.py",
        old="(count + 1) // 2",
        new="count // 2",
        tests=LOOPS,
    ),
    Mutant(
        "loop of attention: the wrong head",
        "generation/kernels.py",
        old="group = head // share",
        new="group = head % groups",
        tests=LOOPS,
    ),
    Mutant(
        "loop of attention: one key too few",
        "generation/kernels.py",
        old="for s in range(length):\n            weight",
        new="for s in range(length - 1):\n            weight",
        tests=LOOPS,
    ),
    Mutant(
        "translating: alpha is ignored",
        "generation/beams.py",
        old="divisor = (self.tokens.shape[2] + 1) ** self.settings.alpha",
        new="divisor = 1.0",
        tests=SEARCH,
    ),
    Mutant(
        "translating: what is suppressed is written",
        "generation/likeliest.py",
        old="if suppress:",
        new="if False:",
        tests=SEARCH,
    ),
]
