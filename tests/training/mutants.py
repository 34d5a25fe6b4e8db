"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

CLASSIFY = ["tests/training/test_classify.py"]
FILL = ["tests/training/test_fill.py"]
TRANSLATE = ["tests/training/test_translate.py"]
AVERAGING = ["tests/training/test_averaging.py"]
RECURRENT_TRAINING = ["tests/training/test_recurrent_pairs.py"]
IMAGES = ["tests/training/test_classify_images.py"]
FREEZING = ["tests/training/test_freezing.py"]
MOVED = ["tests/training/test_attention_kinds.py"]
RECURRENT_RUNS = ["tests/training/test_recurrent.py"]
BAGGING = ["tests/training/test_bag_of_words.py"]
COUNTED = ["tests/training/test_counts.py"]
EMBED = ["tests/training/test_embed.py", "-m", "not slow"]
WATCH = ["tests/training/test_watch.py"]
RESUMING = ["tests/training/test_resume.py"]

MUTANTS = [
    Mutant(
        "reading: duplicates on both sides",
        "tasks/classify/tables.py",
        old="seed=0, groups=everything.keys()",
        new="seed=0",
        tests=CLASSIFY,
    ),
    Mutant(
        "reading: a changed table is read on with",
        "tasks/classify/tables.py",
        old="if recorded.fingerprint == found.fingerprint:",
        new="if True:",
        tests=CLASSIFY,
    ),
    Mutant(
        "reading: the temperature is forgotten",
        "tasks/classify/answers.py",
        old="(1 / _temperature(run / CALIBRATION_FILE), 0.0)",
        new="(1.0, 0.0)",
        tests=CLASSIFY,
    ),
    Mutant(
        "reading: numbers without their mean",
        "tasks/classify/answers.py",
        old="(data.deviation, data.mean)",
        new="(data.deviation, 0.0)",
        tests=CLASSIFY,
    ),
    Mutant(
        "reading: other classes keep the head",
        "tasks/start.py",
        old='kept -= _select_weights(config, "labels")',
        new="pass",
        tests=CLASSIFY,
    ),
    Mutant(
        "reading: the length is not recorded",
        "tasks/encoder_task.py",
        old='data=data.config.override({"length": read_length(model, data.config.length or self.longest)})',
        new="data=data.config",
        tests=CLASSIFY,
    ),
    Mutant(
        "reading: held-out text by the seed of training",
        "tasks/fill/training.py",
        old="self.made_from(part, EVALUATION_SEED)",
        new="self.made_from(part, self.config.training.seed)",
        tests=FILL,
    ),
    Mutant(
        "reading: pairs may change",
        "tasks/fill/task.py",
        old='if config.data.fingerprint.partition("|")[2] != source.config.fingerprint.partition("|")[2]:',
        new="if False:",
        tests=FILL,
    ),
    Mutant(
        "reading: processes name different parts",
        "objectives/pretraining.py",
        old="asked = {name: row.questions.get(name, none) for name in config.questions}",
        new="asked = row.questions",
        tests=FILL,
    ),
    Mutant(
        "reading: sums of parts are not shared",
        "training/sums.py",
        old="self.parts = {name: sums[2 + 3 * n : 5 + 3 * n].tolist() for n, name in enumerate(names)}",
        new="pass",
        tests=FILL,
    ),
    Mutant(
        "translating: spelled alike in every epoch",
        "tasks/translate/encoded_pairs.py",
        old="sample = places + epochs * len(pairs)",
        new="sample = places",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: a text without its end",
        "tasks/translate/encoded_pairs.py",
        old="np.append(ids[: longest - 1], tokenizer.end).astype",
        new="np.array(ids[:longest]).astype",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: the test is greedy",
        "tasks/translate/task.py",
        old='DEFAULT_SEARCH if part == "test" else GREEDY',
        new="GREEDY",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: changed pairs are read on with",
        "tasks/translate/pair_data.py",
        old="if recorded.fingerprint == found.fingerprint:",
        new="if True:",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: sides share the check of a vocabulary",
        "tasks/experiment.py",
        old="check_model(model, self.tokenizer, where, self.source_tokenizer)",
        new="check_model(model, self.tokenizer, where)",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: the mean stays in the model",
        "training/averaging.py",
        old="p.copy_(now[name])",
        new="pass",
        tests=AVERAGING,
    ),
    Mutant(
        "translating: only the last weights are averaged",
        "training/averaging.py",
        old="[*self.kept, now][-self.count :]",
        new="[now]",
        tests=AVERAGING,
    ),
    Mutant(
        "translating: averaged weights are not taken up",
        "training/resume.py",
        old='self.averaging.restore(tensors.get("average", {}))',
        new="pass",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: the loss decides",
        "training/trainer.py",
        old='-loss if self.selection_metric == "validation_loss" else metrics[self.selection_metric]',
        new="-loss",
        tests=AVERAGING,
    ),
    Mutant(
        "translating: ties are not broken",
        "training/trainer.py",
        old="(goal == progress.goal and loss < progress.best)",
        new="False",
        tests=AVERAGING,
    ),
    Mutant(
        "translating: the schedule is not heard",
        "training/trainer.py",
        old='inverse_sqrt=settings.schedule == "inverse-sqrt"',
        new="inverse_sqrt=False",
        tests=TRANSLATE,
    ),
    Mutant(
        "translating: the rate falls as 1/step",
        "training/schedule.py",
        old="math.sqrt(self.warmup / so_far)",
        new="self.warmup / so_far",
        tests=AVERAGING,
    ),
    Mutant(
        "translating: gates are turned together",
        "training/optimizer.py",
        old="heads |= {p: len(p) // module.hidden_size for p in module.parameters() if p.dim() == 2}",
        new="pass",
        tests=RECURRENT_TRAINING,
    ),
    Mutant(
        "translating: a look at a seq2seq is not refused",
        "tasks/translate/translator.py",
        old="            check_looks(self.model)",
        new="            pass",
        tests=RECURRENT_TRAINING,
    ),
    Mutant(
        "looking: changed images are gone on with",
        "tasks/classify/image_data.py",
        old="if recorded.fingerprint == found.fingerprint:",
        new="if True:",
        tests=IMAGES,
    ),
    Mutant(
        "looking: a stage is counted as a layer",
        "models/base.py",
        old="if n == 0 and leads is not None",
        new="if n == 1 and leads is not None",
        tests=FREEZING,
    ),
    Mutant(
        "seeing: what a kind has of its own is looked for",
        "tasks/start.py",
        old='exchanged = _select_weights(config, "exchanged", "labels") | _select_weights(self.model, "exchanged", "labels")',
        new='exchanged = _select_weights(self.model, "exchanged", "labels")',
        tests=MOVED,
    ),
    Mutant(
        "seeing: what a kind had of its own is kept",
        "tasks/start.py",
        old='exchanged = _select_weights(config, "exchanged", "labels") | _select_weights(self.model, "exchanged", "labels")',
        new='exchanged = _select_weights(config, "exchanged", "labels")',
        tests=MOVED,
    ),
    Mutant(
        "freezing: what leads into a layer learns on",
        "training/freezing.py",
        old="for module in (*site.before, site.module):",
        new="for module in (site.module,):",
        tests=FREEZING,
    ),
    Mutant(
        "freezing: what makes vectors of the input learns on",
        "training/freezing.py",
        old='if role.stands == "input":',
        new='if role.stands == "exchanged":',
        tests=FREEZING,
    ),
    Mutant(
        "recurring: the state is not saved",
        "training/resume.py",
        old='tensors["carried"] = carried',
        new="pass",
        tests=RECURRENT_RUNS,
    ),
    Mutant(
        "recurring: the state is not taken up",
        "training/resume.py",
        old="self.carried.load(placed)",
        new="pass",
        tests=RECURRENT_RUNS,
    ),
    Mutant(
        "recurring: the trainer knows of no state",
        "tasks/experiment.py",
        old="carried=self.carried,",
        new="carried=None,",
        tests=RECURRENT_RUNS,
    ),
    Mutant(
        "bagging: pairs are planned as one text",
        "models/bag_of_words.py",
        old='pairs={"pairs": True},',
        new="pairs={},",
        tests=BAGGING,
    ),
    Mutant(
        "counting: a finished run is counted again, and logged otherwise",
        "tasks/generate/counts.py",
        old='line = json.dumps(dict.fromkeys(values) | _finite(values)) + "\\n"',
        new='line = json.dumps(values | {"seconds": seconds}) + "\\n"',
        tests=COUNTED,
    ),
    Mutant(
        "counting: an infinite loss is no JSON",
        "tasks/results.py",
        old="None if value in (math.inf, -math.inf) else value",
        new="value",
        tests=COUNTED,
    ),
    Mutant(
        "counting: a count model is trained further",
        "tasks/generate/counts.py",
        old="    def check_extends(",
        new="    def check_others(",
        tests=COUNTED,
    ),
    Mutant(
        "counting: all tables are float32",
        "models/ngram/model.py",
        old="return {name: tensor.clone() for name, tensor in tensors.items()}",
        new="return super().as_used(tensors)",
        tests=COUNTED,
    ),
    Mutant(
        "vectors: the best guess is kept",
        "training/word_vectors.py",
        old="progress.best, progress.goal = math.inf, -math.inf",
        new="pass",
        tests=EMBED,
    ),
    Mutant(
        "vectors: each step begins the text anew",
        "training/word_vectors.py",
        old="range(step * batch, (step + 1) * batch)",
        new="range(batch)",
        tests=EMBED,
    ),
    Mutant(
        "vectors: the rate does not fall",
        "training/word_vectors.py",
        old="max(MIN_RATE_SHARE, self.schedule.factor(step))",
        new="1.0",
        tests=EMBED,
    ),
    Mutant(
        "vectors: spaces make other words", "tasks/embed/word_list.py", old='.removeprefix(" ")', new="", tests=EMBED
    ),
    Mutant(
        "vectors: rows of tokens are mixed up",
        "tasks/start.py",
        old="rows[known])]",
        new="rows[known][::-1].copy())]",
        tests=EMBED,
    ),
    Mutant("inside: a step stands twice", "tasks/watching.py", old='if line["step"] < step]', new="]", tests=WATCH),
    Mutant(
        "inside: modules stay at rest",
        "tasks/validation_inputs.py",
        old="            module.training = mode\n",
        new="            pass\n",
        tests=WATCH,
    ),
    Mutant(
        "inside: random numbers are used up",
        "tasks/validation_inputs.py",
        old="with torch.random.fork_rng(devices=[]):",
        new="if True:",
        tests=WATCH,
    ),
    Mutant(
        "going on: a log stays open",
        "training/trainer.py",
        old="            self.log.close()\n",
        new="            pass\n",
        tests=RESUMING,
    ),
]
