"""A run that is interrupted ends with the same bytes as one that is not."""

import gc
import json
import math

import numpy as np
import pytest
import torch

from fixtures.runs import hash_run
from training.tiny_trainer import make_trainer
from weft.checkpoints import RunDirectory, list_checkpoints
from weft.errors import DataError
from weft.training import AdamWConfig, Trainer, precision, resume
from weft.training import trainer as trainer_module

STEPS = 30


class Crash(Exception):
    """Stands for a power cut: nothing more is saved."""


def crash_at(step):
    def on_step(values):
        if values["step"] == step:
            raise Crash

    return on_step


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "alone"
    assert make_trainer(path).train().stopped_by == "finished"
    return hash_run(path)


def test_the_same_seed_gives_the_same_bytes(undisturbed, tmp_path):
    make_trainer(tmp_path / "again").train()
    assert hash_run(tmp_path / "again") == undisturbed


def test_another_seed_gives_others(undisturbed, tmp_path):
    make_trainer(tmp_path / "other", seed=1).train()
    assert hash_run(tmp_path / "other") != undisturbed


@pytest.mark.parametrize("step", [1, 4, 5, 6, 7, 8, 12, 13, 14, 24, 25, 26, 29])
def test_a_crash_after_any_step_changes_nothing(undisturbed, tmp_path, step):
    """The epoch is 12 steps: 12, 13, 24 and 25 are its borders; 5 and 25 are saves, 7 and 14 evaluations."""
    with pytest.raises(Crash):
        make_trainer(tmp_path / "run", on_step=crash_at(step)).train()
    make_trainer(tmp_path / "run").train()
    assert hash_run(tmp_path / "run") == undisturbed
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))


def test_several_crashes_in_a_row(undisturbed, tmp_path):
    for step in (3, 11, 12, 12, 27):
        with pytest.raises(Crash):
            make_trainer(tmp_path / "run", on_step=crash_at(step)).train()
    make_trainer(tmp_path / "run").train()
    assert hash_run(tmp_path / "run") == undisturbed


def test_a_crashed_trainer_that_is_forgotten_late_writes_nothing_more(undisturbed, tmp_path):
    """As in a notebook, where an error keeps everything alive until the next one."""
    crashed = make_trainer(tmp_path / "run", on_step=crash_at(13))
    with pytest.raises(Crash):
        crashed.train()
    make_trainer(tmp_path / "run").train()
    del crashed
    gc.collect()
    assert hash_run(tmp_path / "run") == undisturbed


def test_training_a_finished_run_again_changes_nothing(undisturbed, tmp_path):
    make_trainer(tmp_path / "run").train()
    assert make_trainer(tmp_path / "run").train().stopped_by == "finished"
    assert hash_run(tmp_path / "run") == undisturbed


def without(piece, monkeypatch):
    """Resume as if one piece of state had been forgotten."""
    restore = Trainer._restore

    def forgetful(it):
        fresh = {name: p.clone() for name, p in it.model.state_dict().items()}
        restore(it)
        if piece == "weights":
            it.model.load_state_dict(fresh)
        elif piece == "optimizer":
            it.optimizer.state.clear()
        elif piece == "data position":
            it.samples = lambda numbers, samples=it.samples: samples(numbers - it.progress.step * 6)
        elif piece == "schedule":
            it.schedule.factor = lambda step: 1.0
        elif piece == "tokens":
            it.progress.tokens = 0
        elif piece == "log":
            it.log._metrics.write(b"{}\n")
        elif piece == "best":
            it.progress.best = math.inf
            it.progress.since_best = 0

    monkeypatch.setattr(Trainer, "_restore", forgetful)
    if piece == "random state":
        monkeypatch.setattr(trainer_module, "_seed", lambda seed, step, rank: 17)


@pytest.mark.parametrize(
    "piece", ["weights", "optimizer", "data position", "schedule", "random state", "tokens", "log"]
)
def test_negative_control_each_piece_of_state_is_needed(undisturbed, tmp_path, monkeypatch, piece):
    with pytest.raises(Crash):
        make_trainer(tmp_path / "run", on_step=crash_at(12)).train()
    without(piece, monkeypatch)
    make_trainer(tmp_path / "run").train()
    assert hash_run(tmp_path / "run") != undisturbed


def test_damaged_checkpoints_are_passed_over_and_named(undisturbed, tmp_path, caplog):
    with pytest.raises(Crash):
        make_trainer(tmp_path / "run", on_step=crash_at(17)).train()
    newest = list_checkpoints(tmp_path / "run" / "checkpoints")[-1][1]
    assert newest.name == "step-15"
    data = bytearray((newest / "optimizer.safetensors").read_bytes())
    data[len(data) // 2] ^= 1
    (newest / "optimizer.safetensors").write_bytes(data)
    make_trainer(tmp_path / "run").train()
    assert "step-15 refused" in caplog.text
    assert "optimizer.safetensors is damaged" in caplog.text
    assert hash_run(tmp_path / "run") == undisturbed


@pytest.mark.parametrize("harm", ["truncated", "missing", "no manifest", "manifest broken"])
def test_every_kind_of_damage_is_noticed(undisturbed, tmp_path, harm):
    with pytest.raises(Crash):
        make_trainer(tmp_path / "run", on_step=crash_at(17)).train()
    newest = list_checkpoints(tmp_path / "run" / "checkpoints")[-1][1]
    if harm == "truncated":
        (newest / "model.safetensors").write_bytes((newest / "model.safetensors").read_bytes()[:-7])
    elif harm == "missing":
        (newest / "state.json").unlink()
    elif harm == "no manifest":
        (newest / "manifest.json").unlink()
    else:
        (newest / "manifest.json").write_text("{")
    make_trainer(tmp_path / "run").train()
    assert hash_run(tmp_path / "run") == undisturbed


def test_no_sound_checkpoint_at_all_is_said(tmp_path):
    with pytest.raises(Crash):
        make_trainer(tmp_path / "run", on_step=crash_at(12)).train()
    for _, path in list_checkpoints(tmp_path / "run" / "checkpoints"):
        (path / "model.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match="no sound checkpoint"):
        make_trainer(tmp_path / "run").train()


def test_checkpoints_are_counted_and_kept_as_asked(tmp_path):
    make_trainer(tmp_path / "run", keep=3).train()
    folder = tmp_path / "run" / "checkpoints"
    assert [step for step, _ in list_checkpoints(folder)] == [20, 25, 30]
    for odd in ("step-100.backup", "step-", "step-07", ".step-50.1.tmp"):
        (folder / odd).mkdir()
    (folder / "step-9").mkdir()
    (folder / "step-200").write_text("a file")
    assert [step for step, _ in list_checkpoints(folder)] == [9, 20, 25, 30]


def test_a_full_disk_leaves_the_last_checkpoint(undisturbed, tmp_path, monkeypatch):
    from weft.checkpoints import checkpoint

    real, calls = checkpoint.save_file, []

    def full(tensors, path):
        calls.append(path)
        if len(calls) == 6:  # the optimizer of the third checkpoint
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")
        real(tensors, path)

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(DataError, match=r"cannot save checkpoint .*step-15: No space left(.|\n)*still stands"):
        make_trainer(tmp_path / "run").train()
    folder = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in folder.iterdir()) == ["step-10", "step-5"]
    monkeypatch.setattr(checkpoint, "save_file", real)
    make_trainer(tmp_path / "run").train()
    assert hash_run(tmp_path / "run") == undisturbed


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_a_step_that_is_not_a_number_is_not_taken(tmp_path, where):
    it = make_trainer(tmp_path / "run")
    loss = it.loss

    def poisoned(model, batch):
        summed, count = loss(model, batch)
        if it.progress.step == 12:
            if where == "loss":
                return summed * torch.nan, count
            hook = next(model.parameters()).register_hook(lambda g: g * torch.inf)
            summed.register_hook(lambda g: g)
            it.remove = hook
        return summed, count

    it.loss = poisoned
    with pytest.raises(DataError, match="step 13: the loss is"):
        it.train()
    events = it.run.events()
    assert events[-1]["event"] == "nan"
    assert events[-1]["step"] == 13
    assert events[-1]["samples"] == [72, 77]
    assert list_checkpoints(it.run.checkpoints)[-1][0] == 10
    assert all(p.isfinite().all() for p in it.model.parameters())


def test_patience_stops_and_says_so(tmp_path):
    it = make_trainer(tmp_path / "run", patience=1, evaluate_every=2)
    it.evaluate = lambda: {"validation_loss": 1.0}
    outcome = it.train()
    assert outcome.stopped_by == "patience"
    assert outcome.progress.step == 4
    assert make_trainer(tmp_path / "run").run.checkpoints.exists()


def test_accumulation_over_any_micro_batches_is_the_big_batch(tmp_path):
    states = []
    for size in (None, 1, 4, 6):
        it = make_trainer(tmp_path / f"run-{size}", micro_batch=size)
        it.model.layers.requires_grad_(True)
        for module in it.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        for _ in range(3):
            it._step()
        states.append([p.detach().clone() for p in it.model.parameters()])
    for other in states[1:]:
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(other, states[0], strict=True))


def test_resuming_late_costs_what_resuming_early_costs(tmp_path):
    """Data order is arithmetic: sample 10⁹ is as near as sample 0."""
    it = make_trainer(tmp_path / "run")

    assert it.samples(np.arange(6) + 10**9).shape == (6, 17)


def test_bf16_products_train_too(tmp_path):
    it = make_trainer(tmp_path / "run", precision="bf16")
    first = it._step()["loss"]
    for _ in range(20):
        last = it._step()["loss"]
    assert last < first - 0.5
    assert all(p.dtype == torch.float32 for p in it.model.parameters())


@pytest.mark.parametrize("tiles", [True, False])
def test_precision_is_asked_of_the_processor(monkeypatch, tiles):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles, raising=False)
    assert precision.bf16_pays(torch.device("cpu")) is tiles
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported")
    assert precision.bf16_pays(torch.device("cpu")) is False


def test_changed_settings_are_refused_with_the_difference(tmp_path):
    it = make_trainer(tmp_path / "run", on_step=crash_at(12))
    it.identity = {"training": {"batch": 6, "seed": 0}}
    with pytest.raises(Crash):
        it.train()
    it = make_trainer(tmp_path / "run")
    it.identity = {"training": {"batch": 7, "seed": 0}}
    with pytest.raises(DataError, match=r"have changed since this run began: training\.batch: 6 → 7"):
        it.train()


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.checkpoints.run_directory.os.access", lambda path, mode: False)
    with pytest.raises(DataError, match="cannot create"):
        RunDirectory(tmp_path / "new" / "run").check_free()


def test_averages_of_an_earlier_version_are_taken_over(tmp_path):
    """Checkpoints of before called AdamW's averages as torch does."""
    made = make_trainer(tmp_path / "run", optimizer=AdamWConfig())
    made.train()
    now = made.state.optimizer_tensors()
    assert any(name.endswith("/first") for name in now)
    names = {new: old for old, new in resume.EARLIER_NAMES.items()}
    before = {}
    for name, tensor in now.items():
        stem, _, key = name.rpartition("/")
        before[f"{stem}/{names.get(key, key)}"] = tensor
    again = make_trainer(tmp_path / "again", optimizer=AdamWConfig())
    again.state.load_optimizer(before)
    found = again.state.optimizer_tensors()
    assert found.keys() == now.keys() and all(torch.equal(found[name], now[name]) for name in now)
