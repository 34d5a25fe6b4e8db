"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

IMAGED = ["tests/report/test_patterns.py"]
ATTENTION_PAGE = ["tests/report/test_attention_page.py"]
REPORTED = ["tests/report/test_training_report.py"]

MUTANTS = [
    Mutant(
        "seeing: a leak is drawn as future",
        "report/patterns.py",
        old="np.triu(np.ones_like(seen), 1) & ~seen",
        new="np.triu(np.ones_like(seen), 1)",
        tests=IMAGED,
    ),
    Mutant(
        "paging: weights are cut off, not rounded",
        "report/attention_data.py",
        old="np.rint(shares * 255)",
        new="np.floor(shares * 255)",
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: one scale for all rows of a head",
        "report/attention_data.py",
        old="weights.max(axis=-1, keepdims=True, initial=0).astype",
        new="np.broadcast_to(weights.max(axis=(1, 2), keepdims=True), (*weights.shape[:2], 1)).astype",
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: small copies show the first of each block",
        "report/attention_data.py",
        old="np.maximum.reduceat(weights,",
        new="np.take(weights,",
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: sides are turned round",
        "report/attention_data.py",
        old='"asking": number(m.asking)',
        new='"asking": number(m.answering)',
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: a rollout is a layer",
        "report/attention_data.py",
        old="_packed(in_bytes(weights[None]))",
        new="_packed(in_bytes(view.maps[0].weights[:1]))",
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: a script may be ended",
        "report/attention.py",
        old='for letter in "<>&\\u2028\\u2029":',
        new='for letter in ">&\\u2028\\u2029":',
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: facts become code",
        "report/attention.py",
        old="<dd>{html.escape(v)}</dd>",
        new="<dd>{v}</dd>",
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "paging: grey images have one channel",
        "report/attention_data.py",
        old="if few.shape[2] < 3 else",
        new="if False else",
        tests=ATTENTION_PAGE,
    ),
    Mutant(
        "reporting: a broken part ends it",
        "report/training.py",
        old='    except Exception as error:\n        log.warning("the part',
        new='    except ZeroDivisionError as error:\n        log.warning("the part',
        tests=REPORTED,
    ),
    Mutant(
        "reporting: no page ends a training",
        "report/training.py",
        old='    except Exception as error:\n        log.warning("there is no',
        new='    except ZeroDivisionError as error:\n        log.warning("there is no',
        tests=REPORTED,
    ),
    Mutant(
        "reporting: examples of old weights stay",
        "report/training.py",
        old="or not is_current(opened, known)",
        new="or False",
        tests=REPORTED,
    ),
    Mutant(
        "reporting: a label is believed",
        "pages/heat.py",
        old='<th scope="row">{html.escape(name)}</th>',
        new='<th scope="row">{name}</th>',
        tests=REPORTED,
    ),
    Mutant(
        "reporting: a step taken twice counts twice",
        "report/run_files.py",
        old='        each = {line["step"]: line.get("seconds", 0.0) for line in self.timing}\n',
        new='        each: dict[int, float] = {}\n        for line in self.timing:\n            each[line["step"]] = each.get(line["step"], 0.0) + line.get("seconds", 0.0)\n',
        tests=REPORTED,
    ),
    Mutant(
        "reporting: the plan is forgotten",
        "tasks/experiment.py",
        old="            report.begin(run, self.reasons())\n",
        new="            pass\n",
        tests=REPORTED,
    ),
    Mutant(
        "reporting: Python writes none",
        "api.py",
        old="            write_report(run.directory.path)\n",
        new="            pass\n",
        tests=REPORTED,
    ),
]
