"""Runs `weft …` in this process and kills it with SIGKILL at a chosen instant.

python kill_at.py POINT N weft-words…       POINT: step, optimizer, save, manifest, rename, evaluate, model, event,
                                            test, judge (a classifier), measure (one that fills in)
"""

import os
import signal
import sys

from weft.checkpoints import checkpoint
from weft.cli.main import main
from weft.tasks.generate import task as generate
from weft.training import trainer

point, count, *words = sys.argv[1:]
left = int(count)


def killing(function, *, after):
    """The function, with the end of the world before or after its n-th call."""

    def wrapped(*args, **options):
        global left  # noqa: PLW0603
        left -= 1
        if left == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*args, **options)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapped


if point == "step":
    trainer.Trainer._step = killing(trainer.Trainer._step, after=True)
elif point == "optimizer":
    from weft.training.optimizer import AdamW

    AdamW._update = killing(AdamW._update, after=True)  # the matrices have moved, the rest is on its way
elif point == "save":
    checkpoint.save_file = killing(checkpoint.save_file, after=True)
elif point == "manifest":
    checkpoint.write_json = killing(checkpoint.write_json, after=False)
elif point == "rename":
    checkpoint.sync_folder = killing(checkpoint.sync_folder, after=False)
elif point == "evaluate":
    generate.evaluate_text = killing(generate.evaluate_text, after=True)
elif point == "model":
    from weft.checkpoints import run_directory

    run_directory.write_tensors = killing(run_directory.write_tensors, after=False)
elif point == "event":
    from weft.checkpoints import RunDirectory

    RunDirectory.add_event = killing(RunDirectory.add_event, after=True)
elif point == "test":
    trainer.Trainer.load_best = killing(trainer.Trainer.load_best, after=False)
elif point == "judge":
    from weft.tasks.classify.evaluator import Evaluator

    Evaluator.measure = killing(Evaluator.measure, after=True)
elif point == "measure":
    from weft.tasks.fill.task import Pretraining

    Pretraining.measure = killing(Pretraining.measure, after=True)
else:
    sys.exit(f"unknown point {point}")

sys.argv = ["weft", *words]
main()
