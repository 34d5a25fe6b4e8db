"""Options of the verbs, one name each; those that several verbs have stand here once."""

from __future__ import annotations

from typing import Annotated

import typer

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TASK] DATA…",
        help="generate, fill or embed, then text files or folders; classify, then tables (.csv .tsv .jsonl) or a "
        "folder of images; translate, then tables or two text files; or demo",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(help="A family (gpt, bert, vit …: sized by the plan) or a named size (gpt2, vit-b). Default: by task"),
]
TokenizerKind = Annotated[
    str | None,
    typer.Option(help="characters, words, bytes, bpe, unigram or wordpiece. Default: bpe to write, wordpiece to read"),
]
TextColumn = Annotated[str | None, typer.Option(help="The column of the text, or path, in a table. Default: found")]
PairColumn = Annotated[str | None, typer.Option(help="The column of a second text. Default: found")]
LabelColumn = Annotated[str | None, typer.Option(help="The column of the label. Default: found")]
SourceColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="translate: the column to read. Default: the first")
]
TargetColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="translate: the column to write. Default: the second")
]
LabelledPairs = Annotated[
    str | None, typer.Option(metavar="TABLE", help="fill: labelled pairs for the objective `entailment`.")
]
Validation = Annotated[list[str] | None, typer.Option(metavar="FILE…", help="Data to hold out instead of a tenth.")]
Test = Annotated[
    list[str] | None, typer.Option(metavar="FILE…", help="Data to measure the best weights on, at the very end.")
]
From = Annotated[
    str | None, typer.Option("--from", metavar="RUN|HF_DIR", help="Begin with the weights of another model.")
]
Freeze = Annotated[str | None, typer.Option(metavar="N|embeddings", help="What keeps its weights: the first N layers.")]
Minutes = Annotated[float | None, typer.Option(help="Plan for this time. Default: 5; a table is read a few times")]
Steps = Annotated[int | None, typer.Option(help="Train this many steps.")]
Epochs = Annotated[float | None, typer.Option(help="Read the data this many times.")]
Seed = Annotated[int | None, typer.Option(help="Another seed, another run. Default: 0")]
Out = Annotated[str | None, typer.Option(help="Directory of the run. Default: runs/TASK-NAME-N")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or mps. Default: cuda if there is one")]
Threads = Annotated[int | None, typer.Option(help="Processor threads. Default: all")]
SamplePrompt = Annotated[
    str | None, typer.Option(metavar="PROMPT", help="generate: what the model writes after it, before and after.")
]
RecipeFile = Annotated[
    str | None, typer.Option(metavar="RECIPE.toml", help="Settings from a file; options win over it.")
]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
Watch = Annotated[
    bool, typer.Option("--watch", help="Show the softmax health of each head at every evaluation (health.jsonl).")
]
InputAndPosition = Annotated[
    list[str] | None,
    typer.Argument(metavar="[INPUT] [POSITION]", help="--health: a text or image; --reach: a number, from 0."),
]
Health = Annotated[
    bool, typer.Option("--health", help="Softmax health of every head of a run, on INPUT or held-out input.")
]
Reach = Annotated[bool, typer.Option("--reach", help="What POSITION can see after each layer.")]
Flow = Annotated[bool, typer.Option("--flow", help="Gradients through layers, and back in time.")]
Events = Annotated[bool, typer.Option("--json", help="Events as JSON lines on stdout.")]
OneObject = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
ObjectEach = Annotated[bool, typer.Option("--json", help="One JSON object for each text.")]
RunDirectory = Annotated[str, typer.Argument(help="The directory of the run.")]
RunOrFolder = Annotated[str, typer.Argument(help="A run, or a Hugging Face folder.")]
Lines = Annotated[str | None, typer.Option("--input", help="A file with a text on each line; - is stdin.")]
