"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

TASKS = ["tests/exchange/test_transfer.py"]
LENGTHS = ["tests/tasks/test_translation_quality.py", "tests/comparison/test_page.py"]
MOVING = ["tests/exchange/test_image_transfer.py"]
EXPERIMENTS = ["tests/tasks/test_experiments.py"]
VIEWS = ["tests/tasks/test_attention_view.py"]

MUTANTS = [
    Mutant(
        "asking: a recipe may not name its model",
        "tasks/asking.py",
        old="return asked, recipe.without(*OPTION_OF_SETTING), said",
        new="return asked, recipe, said",
        tests=["tests/test_index.py"],
    ),
    Mutant(
        "experiments: word vectors begin anew after a kill",
        "tasks/embed/task.py",
        old="start = self.origin.start or read_start(self.config.start)",
        new="start = self.origin.start",
        tests=EXPERIMENTS,
    ),
    Mutant(
        "experiments: any run is trained further",
        "tasks/experiment.py",
        old='if checkpoint is None or not checkpoint.state["progress"]["finished"]:',
        new="if checkpoint is None and False:",
        tests=EXPERIMENTS,
    ),
    Mutant(
        "tasks: the usual description is taken for every family",
        "tasks/task.py",
        old="next((task for task in reversed(found) if family in task.families), found[0])",
        new="found[0]",
        tests=EXPERIMENTS,
    ),
    Mutant(
        "transfer: bits are not compared", "exchange/certificate.py", old="if different:", new="if False:", tests=TASKS
    ),
    Mutant(
        "transfer: settings are not compared",
        "exchange/certificate.py",
        old="if folder.converter.settings(folder.config) != folder.converter.settings(config):",
        new="if False:",
        tests=TASKS,
    ),
    Mutant(
        "transfer: any difference will do",
        "exchange/certificate.py",
        old="if not apart <= TOLERANCE",
        new="if not apart <= 1e9 + TOLERANCE",
        tests=TASKS,
    ),
    Mutant(
        "transfer: heads may differ in size only",
        "exchange/certificate.py",
        old="for name, values in ours.items():\n        apart",
        new="for name, values in list(ours.items())[:1]:\n        apart",
        tests=TASKS,
    ),
    Mutant(
        "transfer: segments are all alike",
        "exchange/probes.py",
        old="(places * config.segments // lengths).clamp(max=config.segments - 1)",
        new="(0 * places * lengths)",
        tests=TASKS,
    ),
    Mutant(
        "transfer: no padding",
        "exchange/probes.py",
        old="self.keep = places < lengths",
        new="self.keep = places < 99 + lengths",
        tests=TASKS,
    ),
    Mutant(
        "transfer: pairs are not compared",
        "exchange/probes.py",
        old="(_compare_pairs(ours, theirs) if reads else {})",
        new="{}",
        tests=TASKS,
    ),
    Mutant(
        "transfer: special tokens are not compared",
        "exchange/probes.py",
        old='if role == "end" or expected is not None:',
        new="if False:",
        tests=TASKS,
    ),
    Mutant(
        "transfer: a trunk is said to fill",
        "models/bert/model.py",
        old="*(can for head, can in heads.items() if isinstance(self.head, head))",
        new="*heads.values()",
        tests=TASKS,
    ),
    Mutant(
        "translating: a bucket takes in the next length",
        "tasks/translate/quality.py",
        old="length <= high)",
        new="length <= high + 1)",
        tests=LENGTHS,
    ),
    Mutant(
        "translating: lengths of all together",
        "tasks/translate/quality.py",
        old="quality([written[n] for n in places], [references[n] for n in places])",
        new="quality(written, references)",
        tests=LENGTHS,
    ),
    Mutant(
        "translating: lines by pairs, not words",
        "comparison/charts.py",
        old='line["pairs"], line["mean_words"], line[measure]',
        new='line["mean_words"], line["pairs"], line[measure]',
        tests=LENGTHS,
    ),
    Mutant(
        "looking: a border is rounded",
        "images/arrays.py",
        old="edge = int(size / self.crop)",
        new="edge = round(size / self.crop)",
        tests=MOVING,
    ),
    Mutant(
        "looking: a corner is cut out",
        "images/decode.py",
        old="down, right = (rows - size) // 2, (columns - size) // 2",
        new="down, right = 0, 0",
        tests=MOVING,
    ),
    Mutant(
        "looking: the form that a model knows is measured anew",
        "tasks/classify/image_data.py",
        old="    if not mean:",
        new="    if True:",
        tests=MOVING,
    ),
    Mutant(
        "looking: the form of a start is left behind",
        "tasks/classify/images.py",
        old="getattr(start.images, name) for name in FORM_FIELDS}",
        new="getattr(start.images, name) for name in FORM_FIELDS[:2]}",
        tests=MOVING,
    ),
    Mutant(
        "looking: pixels of an export are not compared",
        "exchange/certificate.py",
        old="if folder.preprocessing != exported.preprocessing:",
        new="if False:",
        tests=MOVING,
    ),
    Mutant(
        "looking: an import forgets its pixels",
        "exchange/transfer.py",
        old='origin["preprocessing"] = prepared.to_dict()',
        new="pass",
        tests=MOVING,
    ),
    Mutant(
        "mapping: zeros at the edge are places",
        "tasks/attention_view/images.py",
        old="asking[:, :, ~real].sum(-1, keepdims=True)",
        new="asking[:, :, ~real].mean(-1, keepdims=True)",
        tests=VIEWS,
    ),
    Mutant(
        "mapping: the target is read a token late",
        "tasks/attention_view/texts.py",
        old="given = np.concatenate([[translator.start], tokens[:-1]])",
        new="given = np.concatenate([tokens[:1], tokens[:-1]])",
        tests=VIEWS,
    ),
    Mutant(
        "mapping: segments are forgotten",
        "tasks/attention_view/texts.py",
        old="None if segments is None else [segments]",
        new="None",
        tests=VIEWS,
    ),
]
