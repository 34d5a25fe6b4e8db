"""The embedded table: balanced, clean, the same every time, and the label cannot be read off the text."""

import hashlib
import os
import subprocess
import sys

import pytest

from weft.data import Labels, compare_tables, demo_table, find_columns, read_examples
from weft.data.demo import TOPICS, _masked
from weft.errors import ConfigError


@pytest.fixture(scope="module")
def parts():
    tables = [demo_table(), demo_table("test")]
    return [read_examples(table, find_columns(table)) for table in tables]


def test_it_is_a_good_table(parts):
    train, test = parts
    labels = Labels.of(train.labels)
    assert 8 <= len(labels.classes) <= 12 and labels.warnings == () and set(labels.classes) <= set(TOPICS)
    assert len(train) > 1500 and 0.15 < len(test) / (len(train) + len(test)) < 0.25
    assert max(labels.counts) <= 3 * min(labels.counts)
    assert set(test.labels) == set(labels.classes)
    assert train.notes == () and test.notes == ()


def test_nothing_leaks(parts):
    found = compare_tables(*parts)
    assert found.known == 0 and found.train.contradictions == 0 and found.train.duplicates == 0
    names = {name.strip("_") for topic, modules in TOPICS.items() for name in (topic, *modules)}
    for part in parts:
        for text in part.texts:
            assert not any(name in text.lower() for name in names), text


def test_masking_masks():
    assert _masked("An AsyncIO loop; xml.dom and TurtleScreen") == "An module loop; module.dom and moduleScreen"


def test_it_is_the_same_in_another_process(parts):
    code = (
        "from weft.data import demo_table as d; import hashlib; "
        "print(hashlib.sha256(repr([d().column('text'), d('test').column('label')]).encode()).hexdigest())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=True,
    )
    assert run.stdout.strip() == hashlib.sha256(repr([parts[0].texts, parts[1].labels]).encode()).hexdigest()


def test_there_are_two_parts():
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        demo_table("trian")


def test_reading_tables_needs_no_torch():
    code = (
        "import sys; from weft.data import *; from weft.objectives import pearson, fit_temperature; "
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
