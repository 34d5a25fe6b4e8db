"""`weft generate`: a run writes on from a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from weft.cli.streams import groups, open_run, output_to, texts_from

if TYPE_CHECKING:
    from weft.generation import GenerationConfig, Sample
    from weft.tasks import Run

AT_ONCE = 16  # lines of a file that are read and written on together


def generate(
    run: Annotated[str, typer.Argument(help="A run, or a Hugging Face folder.")],
    prompt: Annotated[
        list[str] | None, typer.Argument(help="Texts to go on from; - reads one from stdin. None: a conversation.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Texts for each prompt.")] = 1,
    max_tokens: Annotated[int, typer.Option(help="New tokens at most.")] = 200,
    temperature: Annotated[float, typer.Option(help="Below 1 cautious, above 1 bold, 0 greedy.")] = 0.8,
    top_k: Annotated[int | None, typer.Option(help="Only the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the likeliest tokens that share this probability.")] = 0.95,
    min_p: Annotated[float | None, typer.Option(help="Only tokens this likely, relative to the likeliest.")] = None,
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: repeat less.")] = 1.0,
    stop: Annotated[list[str] | None, typer.Option(help="End before this string. May be given again.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another text.")] = 0,
    probabilities: Annotated[
        int | None, typer.Option(metavar="N", help="Show each token's probability and N unchosen ones.")
    ] = None,
    copied: Annotated[bool, typer.Option("--copied", help="How much stands in the training text.")] = False,
    weights: Annotated[str, typer.Option(help="float32, bf16 or int8: fewer bytes, more tokens a second.")] = "float32",
    input_: Annotated[
        str | None, typer.Option("--input", help="A file with a prompt on each line; - is stdin.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="A file for the texts, one line each. Default: stdout")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads. Default: all")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each text.")] = False,
) -> None:
    """Let a model write on from your words.

    Example:  weft generate runs/generate-book-1 "Once upon a time"
    """
    from weft.generation import GenerationConfig

    settings = GenerationConfig(
        samples=samples,
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop=tuple(stop or ()),
        seed=seed,
        alternatives=probabilities,
    )
    with ExitStack() as files:
        source = texts_from(prompt, input_, files)
        writer = _Writer(open_run(run, threads), settings, weights, copied=copied, as_json=as_json)
        if source is None:
            writer.converse()
        elif input_ is not None or output is not None:
            writer.write_lines(source, output_to(output, files))
        else:
            writer.show(list(source))


class _Writer:
    """Shows or files what the run writes."""

    def __init__(self, run: Run, settings: GenerationConfig, weights: Any, *, copied: bool, as_json: bool) -> None:
        from weft.tasks.generate.statistics import rounding_loss
        from weft.tasks.generate.text_generator import packed_model

        self.run, self.settings, self.as_json = run, settings, as_json
        self.source = run.training_text() if copied else None
        self.model = packed_model(run, weights)
        if weights != "float32":
            self._say_loss(rounding_loss(run, weights), weights)

    def _say_loss(self, found: dict[str, Any] | None, weights: str) -> None:
        if found is None:
            note = f"{weights} weights; measure what they cost with: weft evaluate RUN text.txt --weights {weights}"
        else:
            note = (
                f"{weights} weights: loss on {found['tokens']:,} held-out tokens {found['before']:.4f} → "
                f"{found['after']:.4f} ({found['worse']:+.2%})"
            )
        typer.echo(note, err=True)

    def _samples(self, prompts: list[str]) -> Iterator[Sample]:
        """Whole texts in the order of their prompts, each as soon as those before it are there."""
        from weft.generation import stream

        waiting: dict[int, Sample] = {}
        following = 0
        for piece in stream(self.model, self.run.tokenizer, prompts, self.settings):
            if piece.sample is not None:
                waiting[piece.index] = piece.sample
            while following in waiting:
                yield waiting.pop(following)
                following += 1

    def show(self, prompts: list[str]) -> None:
        """On the terminal: one text as it comes, several one after the other."""
        if self.as_json:
            for sample in self._samples(prompts):
                typer.echo(json.dumps(self._fields(sample), ensure_ascii=False))
            return
        if len(prompts) * self.settings.samples == 1:
            self._show_growing(prompts[0])
            return
        for i, sample in enumerate(self._samples(prompts)):
            typer.echo(f"{'' if i == 0 else chr(10)}── {i + 1} ──")
            typer.echo(typer.style(sample.prompt, bold=True) + sample.text)
            self._remarks(sample)

    def _show_growing(self, prompt: str) -> None:
        from weft.generation import stream

        typer.echo(typer.style(prompt, bold=True), nl=False)
        for piece in stream(self.model, self.run.tokenizer, [prompt], self.settings):
            typer.echo(piece.text, nl=False)
            sys.stdout.flush()
            if piece.sample is not None:
                typer.echo()
                self._remarks(piece.sample)

    def _remarks(self, sample: Sample) -> None:
        for step in sample.steps:
            others = "  ".join(f"{text!r} {share:.1%}" for text, share in step.others)
            typer.echo(f"{step.probability:7.1%}  {step.text!r:16}  {others}".rstrip())
        if self.source is not None:
            typer.echo(f"{self._copied(sample):.0%} of it stands word for word in the training text", err=True)

    def _copied(self, sample: Sample) -> float:
        from weft.tasks.generate.statistics import copied_share

        assert self.source is not None
        return copied_share(sample.text, self.source)

    def _fields(self, sample: Sample) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "prompt": sample.prompt,
            "sample": sample.number,
            "text": sample.text,
            "tokens": len(sample.tokens),
            "ended_by": sample.ended_by,
        }
        if self.settings.alternatives is not None:
            fields["steps"] = [
                {"text": step.text, "probability": step.probability, "others": [list(other) for other in step.others]}
                for step in sample.steps
            ]
        return fields | ({} if self.source is None else {"copied": self._copied(sample)})

    def write_lines(self, prompts: Iterator[str], output: TextIO) -> None:
        """Line by line from a stream into a stream, in order; a line break inside a text is written \\n."""
        done = 0
        for group in groups(prompts, AT_ONCE):
            for sample in self._samples(group):
                whole = (sample.prompt + sample.text).replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
                line = json.dumps(self._fields(sample), ensure_ascii=False) if self.as_json else whole
                output.write(line + "\n")
            output.flush()
            done += len(group)
            if output is not sys.stdout:
                typer.echo(f"{done} prompts done", err=True)

    def converse(self) -> None:
        """Prompts from the keyboard until Ctrl-D."""
        typer.echo("Type the beginning of a text; the model writes on. Ctrl-D ends.", err=True)
        while True:
            try:
                prompt = input("> ")
            except EOFError:
                typer.echo()
                return
            if prompt.strip():
                self._show_growing(prompt)
                self.settings = self.settings.override({"seed": self.settings.seed + 1})
