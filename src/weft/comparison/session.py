"""A comparison in its folder: the plan, a run for each variant, and what came out, kept after every one.

DIR/plan.json      what is to be trained, written once
DIR/NAME/          the run of a variant, as `weft train` makes it, with outcome.json beside the rest
DIR/compare.json   the rows so far
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weft.checkpoints import RunDirectory
from weft.checkpoints.files import read_json, write_json, write_text
from weft.comparison.child import read_outcome
from weft.comparison.planning import make_plan
from weft.comparison.process import run_in_child
from weft.comparison.result import Comparison
from weft.comparison.rows import row_of
from weft.comparison.trials import Plan, Trial
from weft.comparison.variants import TrialSpec
from weft.errors import ConfigError, DataError
from weft.tasks.recording import Report
from weft.tasks.sources import short_name

log = logging.getLogger(__name__)
FORMAT = 1
PLAN, RESULT = "plan.json", "compare.json"


class Session:
    """One comparison, new or taken up again. `run` trains what is missing; what is finished is kept."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self.reasons: dict[str, str] = {}

    @classmethod
    def new(cls, asked: TrialSpec, out: str | None, report: Report) -> Session:
        """Check and plan everything; nothing is written before `run`."""
        path = Path(out) if out else RunDirectory.next_free(Path("runs"), f"compare-{_name(asked)}")
        if (path / PLAN).is_file():
            raise DataError(
                f"{path} holds a comparison already", advice=f"go on with it:  weft compare --resume {path}"
            )
        RunDirectory(path).check_free()
        return cls(path, make_plan(asked, path, report))

    @classmethod
    def open(cls, path: str | Path) -> Session:
        """A comparison that was begun; it goes on with the settings it began with."""
        path = Path(path)
        if not (path / PLAN).is_file():
            what = "is no comparison: it has no plan.json" if path.is_dir() else "does not exist"
            raise DataError(f"{path} {what}", expected="the folder of a comparison")
        raw = read_json(path / PLAN)
        if not isinstance(raw, dict) or raw.pop("format", None) != FORMAT:
            raise DataError(f"{path / PLAN} was written by another version of Weft", advice="use that one")
        try:
            return cls(path, Plan(**raw | {"orders": [Trial(**order) for order in raw["orders"]]}))
        except (KeyError, TypeError) as error:
            raise DataError(f"{path / PLAN} is damaged: {error}", advice="compare anew") from None

    def folder(self, order: Trial) -> Path:
        """The run of a variant."""
        return self.path / order.name

    def is_kept(self, order: Trial) -> bool:
        """Whether there is nothing left to do."""
        return bool(order.reason) or read_outcome(self.folder(order)).get("done") is True

    def result(self) -> Comparison:
        """The rows as they stand."""
        rows = [row_of(order, self.folder(order), self.reasons.get(order.name, "")) for order in self.plan.orders]
        return Comparison(self.path, self.plan.task, rows)

    def run(self, report: Report) -> Comparison:
        """Train what is missing, each in a process of its own; Ctrl-C leaves everything to be resumed."""
        self._write_plan()
        with RunDirectory(self.path).locked():
            try:
                for number, order in enumerate(self.plan.orders, 1):
                    self._run_one(number, order, report)
            finally:
                result = self._write_result()
        return result

    def _run_one(self, number: int, order: Trial, report: Report) -> None:
        kept = self.is_kept(order)
        about = {"name": order.name, "number": number, "count": len(self.plan.orders), "kept": kept}
        report({"event": "variant", **about, "reason": order.reason})
        if not kept:
            reason = run_in_child(order, self.folder(order), report)
            if reason:
                self.reasons[order.name] = reason
            self._write_result()
        row = row_of(order, self.folder(order), self.reasons.get(order.name, ""))
        report({"event": "variant done", **about, "row": row})

    def _write_plan(self) -> None:
        if (self.path / PLAN).exists():
            return
        RunDirectory.create(self.path)
        plan: dict[str, Any] = asdict(self.plan)
        write_json(self.path / PLAN, {"format": FORMAT, **plan})

    def _write_result(self) -> Comparison:
        result = self.result()
        write_json(self.path / RESULT, {"format": FORMAT, **result.to_dict()})
        return result

    def draw(self, result: Comparison) -> list[Path]:
        """The page and the chart; a chart needs matplotlib, and is left out without it."""
        from weft.comparison.figure import write_chart
        from weft.comparison.page import page

        write_text(self.path / "compare.html", page(result))
        made = [self.path / "compare.html"]
        try:
            write_chart(result, self.path / "compare.png")
        except ImportError:
            log.info("no compare.png: matplotlib is not installed")
        else:
            made.append(self.path / "compare.png")
        return made


def _name(asked: TrialSpec) -> str:
    if not asked.data:
        if asked.config is None:
            raise ConfigError(
                "no data was given", expected="text files, a folder, tables, or demo", advice="weft compare demo …"
            )
        return Path(asked.config).stem
    return short_name(asked.data)
