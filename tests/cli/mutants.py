"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

USE = ["tests/cli/test_classify.py", "tests/cli/test_fill.py", "tests/cli/test_embed.py"]
TRANSLATING = ["tests/cli/test_translate.py"]
LOOKING = ["tests/cli/test_classify_images.py"]
TYPED = ["tests/cli/test_attention.py"]
CUTTING = ["tests/cli/test_tokens.py"]
MAPS_TYPED = ["tests/cli/test_attention_maps.py"]
INSIDE_TYPED = ["tests/cli/test_inspect_inside.py"]
INSPECTING = ["tests/cli/test_inspect.py"]
CHECKING = ["tests/cli/test_check_pairs.py", "tests/tasks/test_labelled_check.py", "tests/tasks/test_pair_facts.py"]

MUTANTS = [
    Mutant(
        "reading: the truth is overwritten",
        "cli/classify.py",
        old='_free(said if name == "label" else name, title): value',
        new="name: value",
        tests=USE,
    ),
    Mutant(
        "reading: texts in another order",
        "tasks/classify/evaluator.py",
        old="found[places] = logits",
        new="found[sorted(places)] = logits",
        tests=USE,
    ),
    Mutant(
        "reading: a file is written over",
        "cli/streams.py",
        old='file = open_file(path, "x")',
        new='file = Path(path).open("w")',
        tests=USE,
    ),
    Mutant(
        "reading: marks count in the mean",
        "tasks/embed/text_encoder.py",
        old="marks = 0 if self.writes else 1",
        new="marks = 0",
        tests=USE,
    ),
    Mutant(
        "reading: the rest of a long text is left out",
        "tasks/embed/text_encoder.py",
        old="for start in range(0, max(1, len(ids)), step):",
        new="for start in range(0, 1, step):",
        tests=USE,
    ),
    Mutant(
        "reading: special tokens as candidates",
        "tasks/fill/filler.py",
        old="logits[:, self._special_ids()] = -torch.inf",
        new="pass",
        tests=USE,
    ),
    Mutant(
        "translating: draws are one",
        "tasks/translate/translator.py",
        old="samples=self.best",
        new="samples=1",
        tests=TRANSLATING,
    ),
    Mutant(
        "translating: the joint table looks at itself",
        "tasks/translate/alignment.py",
        old="weights[:, : len(source)]",
        new="weights[:, -len(source) :]",
        tests=TRANSLATING,
    ),
    Mutant(
        "translating: letters stand there as often as they have bytes",
        "tasks/translate/alignment.py",
        old='if tokenizer.kind in ("other", "wordpiece"):',
        new="if True:",
        tests=TRANSLATING,
    ),
    Mutant(
        "looking: a broken image ends well",
        "cli/classify_images.py",
        old="        if self.failed:",
        new="        if False:",
        tests=LOOKING,
    ),
    Mutant(
        "seeing: half blocks are upside down",
        "cli/attention.py",
        old="for upper, lower in zip(cells[::2], cells[1::2], strict=True)",
        new="for lower, upper in zip(cells[::2], cells[1::2], strict=True)",
        tests=TYPED,
    ),
    Mutant(
        "cutting: ids stand anywhere",
        "cli/tokens_shown.py",
        old='lower += number + " " * (size - len(number) + 1)',
        new='lower += number + " "',
        tests=CUTTING,
    ),
    Mutant(
        "cutting: a small text teaches itself",
        "cli/tokens.py",
        old="if sum(map(len, pieces)) >= LARGE:",
        new="if True:",
        tests=CUTTING,
    ),
    Mutant(
        "cutting: lines are wider than the window",
        "cli/tokens_shown.py",
        old="if upper and cell_len(upper) + size > width:",
        new="if False:",
        tests=CUTTING,
    ),
    Mutant(
        "mapping: one head is another",
        "analysis/view.py",
        old="one.weights[head - 1 : head]",
        new="one.weights[head - 2 : head - 1]",
        tests=MAPS_TYPED,
    ),
    Mutant(
        "inside: an n-gram sees one token more",
        "models/ngram/model.py",
        old="(Recent(self.config.order - 1),)",
        new="(Recent(self.config.order),)",
        tests=INSIDE_TYPED,
    ),
    Mutant(
        "costs: a bucket is a text",
        "tasks/inspection.py",
        old="micro_batch=max(1, round(training.micro_batch * each))",
        new="micro_batch=training.micro_batch",
        tests=INSPECTING,
    ),
    Mutant(
        "inside: the middle is half of the row",
        "analysis/model_reach.py",
        old="return length - grid.places + grid.rows // 2 * grid.columns + grid.columns // 2",
        new="return length // 2",
        tests=INSIDE_TYPED,
    ),
    Mutant(
        "costs: what does not fit is measured",
        "cli/inspect_cost.py",
        old='if _own_loop(found) or not told["memory"]["fits"]:',
        new="if _own_loop(found):",
        tests=INSPECTING,
    ),
    Mutant(
        "checking: the check of a plugin's task is not found",
        "tasks/data_check.py",
        old='return getattr(REGISTERED[task], "data_checks", ())',
        new="return ()",
        tests=["tests/test_plugins.py"],
    ),
    Mutant(
        "checking: the kinds of data are asked in any order",
        "tasks/data_check.py",
        old="key=lambda one: one.turn or 0)",
        new="key=lambda one: -(one.turn or 0))",
        tests=CHECKING,
    ),
    Mutant(
        "checking: what stands beside a text is not compared",
        "data/column_check.py",
        old="return len(self.keys) - len(self._rows)",
        new="return len(self.keys) - len(self._texts)",
        tests=CHECKING,
    ),
    Mutant(
        "checking: all texts that are known have the same label",
        "data/column_check.py",
        old="return Overlap(found, same, found - same)",
        new="return Overlap(found, found, 0)",
        tests=CHECKING,
    ),
]
