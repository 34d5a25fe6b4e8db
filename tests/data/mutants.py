"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

ROWS = ["tests/data/test_by_length.py", "tests/objectives/test_classification.py"]
SPELLING = ["tests/data/test_subword_regularisation.py", "tests/models/test_bert.py"]
IMAGE_FILES = ["tests/data/test_images.py"]

MUTANTS = [
    Mutant(
        "reading: batches do not know where the epoch began",
        "data/by_length.py",
        old="rest = -epoch * count % self.batch",
        new="rest = 0",
        tests=ROWS,
    ),
    Mutant(
        "reading: the same order in every epoch",
        "data/by_length.py",
        old="Shuffle(count, self.seed, epoch)",
        new="Shuffle(count, self.seed, 0)",
        tests=ROWS,
    ),
    Mutant(
        "reading: every word is spelled otherwise",
        "data/subword_regularisation.py",
        old="(unit(drawn) < share)",
        new="(unit(drawn) < 1)",
        tests=SPELLING,
    ),
    Mutant(
        "reading: spellings by the place in the batch",
        "data/subword_regularisation.py",
        old="np.arange(len(ids)) - starts[texts]",
        new="np.arange(len(ids))",
        tests=SPELLING,
    ),
    Mutant(
        "reading: padding is averaged",
        "models/bert/model.py",
        old="hidden.masked_fill(~keep[..., None], 0).sum(1)",
        new="hidden.sum(1)",
        tests=SPELLING,
    ),
    Mutant(
        "reading: lengths are not looked at",
        "data/by_length.py",
        old='np.argsort(self.lengths[pool], kind="stable")',
        new="np.arange(len(pool))",
        tests=ROWS,
    ),
    Mutant(
        "reading: marks are hidden too",
        "objectives/classification.py",
        old="chosen &= ~torch.isin(row.tokens, whole.to(row.tokens.device))",
        new="pass",
        tests=ROWS,
    ),
    Mutant(
        "reading: words are hidden when it is used",
        "objectives/classification.py",
        old="self.with_gaps(batch.row) if model.training else batch.row",
        new="self.with_gaps(batch.row)",
        tests=ROWS,
    ),
    Mutant(
        "reading: classes weigh alike",
        "objectives/classification.py",
        old="(each * (weights[labels] if labels.dim() == 1 else labels @ weights)).sum()",
        new="each.sum()",
        tests=ROWS,
    ),
    Mutant(
        "reading: a mean for a sum",
        "objectives/classification.py",
        old="(logits[:, 0] - labels.float()).square().sum()",
        new="(logits[:, 0] - labels.float()).square().mean()",
        tests=ROWS,
    ),
    Mutant(
        "looking: any number of broken images is left out",
        "data/images.py",
        old="if len(problems) > TOLERATED * len(found):",
        new="if False:",
        tests=IMAGE_FILES,
    ),
    Mutant(
        "looking: texts with an image are images",
        "data/image_files.py",
        old="return deep > texts if texts else deep + flat > 0",
        new="return deep + flat > 0",
        tests=IMAGE_FILES,
    ),
]
