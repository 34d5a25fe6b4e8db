"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

SETTINGS = ["tests/parity/test_settings.py"]
DAVIT = ["tests/parity/test_davit.py"]

MUTANTS = [
    Mutant(
        "looking: windows of DaViT see no filling",
        "models/davit/model.py",
        old="whole = filled(as_map(h, grid), self.window)",
        new="whole = filled(as_map(h, grid), 1)",
        tests=DAVIT,
    ),
    Mutant(
        "looking: timm's channel maps by their names",
        "models/davit/converters.py",
        old='("value", "query", "key")',
        new='("query", "key", "value")',
        tests=DAVIT,
    ),
    Mutant(
        "converters: another activation where GPT-2 says nothing",
        "models/gpt/converters.py",
        old='default="gelu_new"',
        new='default="gelu"',
        tests=SETTINGS,
    ),
    Mutant(
        "converters: a word for another activation",
        "models/usual_parts.py",
        old='    "relu2": "squared-relu",',
        new='    "relu2": "relu",',
        tests=["tests/parity/test_hugging_face.py"],
    ),
    Mutant(
        "converters: a setting of Marian's that nobody looks at",
        "models/transformer/marian.py",
        old='        Only("is_decoder", False, None, why=READS),\n',
        new="",
        tests=SETTINGS,
    ),
]
