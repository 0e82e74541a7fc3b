"""The command position-card: it parses what is typed, and has a card of each model written into a folder of its own."""

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from position_card.card import sources
from position_card.card.sources import RefusedError, Source
from position_card.core import devices, runtime
from position_card.core.runtime import InputError, log

if TYPE_CHECKING:
    from position_card.card.card import Card
    from position_card.card.subject import Subject
    from position_card.texts.records import Records

Text = tuple[list[str], str, str]  # documents, what it is called, and where it comes from

REFUSED, FAILED, INTERRUPTED, BROKEN_PIPE = 2, 1, 130, 141  # exit statuses; the last one is that of a broken pipe
FAULT = "fault.txt"  # in the folder of a card: the traceback of an unexpected fault
SHORTEST = 9  # tokens of a prompt
FEWEST = 8  # prompts
MOST_THREADS = 1024
BELONG_TO_DOCUMENTS = ("rotate", "generate", "prefix")
BELONG_TO_CARDS = (
    "text",
    "target",
    "lengths",
    "prompts",
    "replace",
    "recall",
    "thorough",
    "no_questions",
    "tokens_per_batch",
    "activation_checkpointing",
)

DESCRIPTION = """\
Measure the position bias of language models: how much each layer's attention adds to the residual stream (lambda), how
much each token of a prompt influences the next one, by gradients and by replacing tokens, what attention rollouts
predict of it, where attention looks, and where in a prompt a passage must stand to be found again. Each model gets a
card in a folder of its own: card.md says in words what was found, card.pdf (.svg, .png) shows it, tables/ has the
numbers. A command that was killed goes on from what it has kept when it is typed again."""
EPILOG = """\
examples:
  position-card ./my-model                               a directory that save_pretrained wrote
  position-card ./model.Q4_K_M.gguf --text ./texts.jsonl a GGUF file, on your own text
  position-card Qwen/Qwen3-0.6B --untrained 3            a model of the Hugging Face hub beside three untrained copies
  position-card ./a ./b --lengths 64 256 1024            two models side by side
  position-card ./run/checkpoint-*                       a training run, step by step
  position-card ./my-model --documents rag.jsonl         where in your prompts the documents belong that hold answers
  position-card Qwen/Qwen2.5-72B --gpus 4                a model that does not fit on one GPU

exit status: 0; 1 if a model could not be measured (the others are); 2 if the command is wrong; 130 if it was
interrupted; 141 if nobody read what it printed"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of what may be typed."""
    parsed = argparse.ArgumentParser(
        "position-card", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parsed.add_argument
    models = "a directory, a GGUF file, an id of the Hugging Face hub, or package:NAME, a package with a GGUF file"
    add("models", nargs="+", metavar="MODEL", help=models)
    text = (
        "the text that prompts are cut from: a .txt file, which is one document; a .jsonl file, where each line has a "
        "document under the key text; a directory of such files; - for standard input; or the id of a data set of the "
        "hub (default: the prose of Python's standard library)"
    )
    replace = "replace tokens in N of the longest prompts (default: 8, unless that takes more than ten minutes)"
    thorough = (
        "64 prompts, 16 of which are replaced, and 16 contexts, where nothing else is asked for: intervals a third "
        "narrower"
    )
    recall = (
        "look for repeated passages in N contexts of random words (default: 8, unless that takes more than ten "
        "minutes); a context has 128 words, which stand apart in as many tokens as the longest of --lengths has, if "
        "that is above 256"
    )
    target = (
        "influence is the gradient of this: p, the probability of the most likely next token; log-p, its logarithm; "
        "contrast, its logit less that of the second; or the probability of a token that you name (default: p)"
    )
    documents = (
        "write no card; say where in a prompt the documents belong that hold the answer: a .jsonl file of at least 8 "
        "records, each with question, answers and ctxs, or messages and documents, or choices; - for standard input"
    )
    generate = (
        "let the model say N tokens, and see whether the answer is among them (default: 0, see how probable it is)"
    )
    precision = "precision of the weights (default: float32 up to a billion parameters, bfloat16 above)"
    add("--text", default=sources.TEXT, metavar="FILE", help=text)
    lengths = "lengths of the prompts in tokens (default: 64 256)"
    add("--lengths", nargs="+", type=_least(SHORTEST), default=[64, 256], metavar="N", help=lengths)
    add("--prompts", type=_least(FEWEST), metavar="N", help="prompts of each length (default: 32)")
    add("--replace", type=_least(0), metavar="N", help=replace)
    add("--recall", type=_least(0), metavar="N", help=recall)
    add("--thorough", action="store_true", help=thorough)
    add("--no-questions", action="store_true", help="do not ask the built-in questions, with which a card begins")
    add("--untrained", type=_least(0), default=0, metavar="N", help="untrained copies to measure, too, at most 3")
    add("--target", default="p", metavar="p|log-p|contrast|TOKEN", help=target)
    add("--documents", metavar="FILE", help=documents)
    add("--rotate", action="store_true", help="of --documents, every document at every place: all rotations")
    add("--generate", type=_least(0), default=0, metavar="N", help=generate)
    add(
        "--prefix",
        type=lambda typed: typed.replace("\\n", "\n"),
        metavar="TEXT",
        help=r"how an answer begins; \n is a line break (default: Answer:, and nothing where records are messages)",
    )
    add("--plain", action="store_true", help="write questions without the model's chat template")
    add("--device", choices=("cpu", "cuda"), help="where models run (default: a GPU if torch sees one)")
    add("--gpus", type=_least(1), default=1, metavar="N", help="spread each model over N GPUs (default: 1)")
    add("--precision", choices=("float32", "bfloat16"), default="auto", help=precision)
    add("--tokens-per-batch", type=_least(0), default=0, metavar="N", help="tokens at once (default: what fits)")
    add("--activation-checkpointing", action="store_true", help="less memory, a third more time")
    add("--threads", type=_least(1, MOST_THREADS), metavar="N", help="threads (default: those of torch)")
    add("--seed", type=_least(0), default=0, metavar="N", help="draws prompts and weights (default: 0)")
    add(
        "--out", type=Path, default=Path("position-card"), metavar="DIR", help="where cards go (default: position-card)"
    )
    add("--force", action="store_true", help="measure anew, and replace the card that is there")
    add("--tokenizer", type=Path, metavar="DIR", help="use the tokenizer of this directory or GGUF file")
    add("--revision", metavar="R", help="the commit, branch or tag of a model of the hub")
    add("--offline", action="store_true", help="use no network, but the cache of the hub")
    add("--dry-run", action="store_true", help="say what measuring takes, and measure nothing")
    add("--json", action="store_true", help="print the statistics of every card as JSON")
    add("--quiet", action="store_true", help="print nothing but errors")
    add("--verbose", action="store_true", help="also print progress, in lines")
    add("--version", action="version", version=f"position-card {_version()}")
    return parsed


def _version() -> str:
    """Return the version of the package that is installed."""
    try:
        return version("position-card")
    except PackageNotFoundError:  # it runs from the folder of the project
        return "of this folder"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status. Where nobody reads what it prints any more, it ends without a word."""
    try:
        try:
            return _main(arguments)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # else Python says so at its own end
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return BROKEN_PIPE


def _main(arguments: Sequence[str] | None) -> int:
    typed = parser().parse_args(arguments)
    with _logging_to_terminal(typed.quiet, typed.verbose):
        try:
            return _run(typed)
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            return REFUSED
        except (MemoryError, RuntimeError) as error:
            if not runtime.out_of_memory(error):
                raise
            print("error: out of memory; give it a shorter text or a machine that has more", file=sys.stderr)
            return FAILED
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return INTERRUPTED


def _run(typed: argparse.Namespace) -> int:
    """Do what the arguments of the command say, and return its exit status: 0, or FAILED where a model failed.

    Models are measured one after the other, and the error of one is a line. Raises InputError before any is measured
    where the arguments cannot be meant, and RefusedError and BrokenPipeError at once.
    """
    if typed.offline:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read where the library of the hub is imported, which is below
    models = [sources.source(model) for model in typed.models]
    steps = sources.run_steps(models)
    models = [*steps] or models
    for fault in sources.faults(models, typed.untrained):
        raise InputError(fault)
    if typed.gpus > 1:
        _require_gpus(typed.gpus, typed.device)
    for model in models:
        if model.kind == "path" and (typed.out / model.name).resolve() == model.path.resolve():
            raise InputError(f"the card of {model.argument} would be put among its files; give another folder (--out)")
    text = cache(partial(_text, typed.text))
    records = _records(typed)
    cards: dict[str, Card] = {}  # by the name of their folder
    statistics: list[dict[str, Any]] = []  # of records
    failed = False
    for model in sources.with_copies(models, typed.untrained):
        try:
            if records is None:
                cards |= _cards(model, text, typed)
            else:
                statistics += _documents(model, records, typed)
        except RefusedError:
            raise
        except BrokenPipeError:
            raise
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
        except Exception as error:
            print(f"error: {_fault(model, error, typed.out / model.name / FAULT)}", file=sys.stderr)
            failed = True
    if len(cards) > 1:
        _pages_together(cards, models, steps, typed)
    if typed.json:
        print(json.dumps([*statistics, *(_statistics(card) for card in cards.values())], indent=2))
    return FAILED if failed else 0


def _pages_together(
    cards: "Mapping[str, Card]", models: Sequence[Source], steps: Mapping[Source, int], typed: argparse.Namespace
) -> None:
    """Write the pages of several cards, by the names of their folders: side by side, and of a run by training step."""
    from position_card.card import compare, training_run

    if len(cards) <= sources.MOST_COMPARED:
        folder = typed.out / sources.folder_of_several(models, typed.untrained)
        compare.save_comparison(list(cards.values()), folder, [f"../{name}" for name in cards])
        runtime.announce(f"read {folder}/card.md")
    of_run = {step: cards[model.name] for model, step in steps.items() if model.name in cards}
    if of_run and training_run.is_one(list(of_run.values())):
        folder = typed.out / f"{sources.Source(sources.run_name(models), 'named').name}-by-step"
        training_run.save_run(of_run, sources.run_name(models), folder, [f"../{name}" for name in cards])
        runtime.announce(f"read {folder}/card.md")


def _fault(model: Source, error: Exception, file: Path) -> InputError:
    """Write the traceback of what nobody expected into a file; returns the line that says so."""
    if runtime.out_of_memory(error):
        return InputError(
            f"out of memory with model {model.argument}; give it a shorter text or a machine that has more"
        )
    traceback_note = f"its traceback is in {file}"
    try:
        with runtime.whole_file(file) as partial:
            partial.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except InputError as unwritten:
        traceback_note = f"its traceback has no place, since {unwritten}"
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InputError(
        f"model {model.argument}: an unexpected fault ({runtime.shortened(reason, 200)}); {traceback_note}; please "
        "report it"
    )


def _require_gpus(count: int, device: str | None) -> None:
    """Let torch see so many GPUs and no others, since a model is spread over all that it sees.

    Raises InputError where there are fewer, or where the CPU is asked for.
    """
    if device == "cpu":
        raise InputError("--gpus has no effect with --device cpu; leave one of them out")
    if visible := devices.visible_gpus():
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible[:count])

    import torch

    if (visible_count := torch.cuda.device_count()) < count:
        raise InputError(
            f"--gpus {count} needs {count} GPUs, and torch sees {visible_count}; lower it, or go where there are more"
        )


def _text(typed: str) -> Text:
    """Read the text that the command line names: `typed` is a path, an id of the hub, a corpus of this project or "-".

    Returns its documents, cut to `texts.CHARACTERS` characters together, the name to show, and where they come from in
    words. Raises RefusedError where no text can be read.
    """
    from position_card.card import texts
    from position_card.texts import corpus

    try:
        text = sources.source(typed, corpus.TEST_SHARE)
        documents, origin = texts.read_documents(text)
        return list(texts.first_characters(texts.CHARACTERS, documents)), text.label, origin
    except InputError as error:
        raise RefusedError(str(error)) from error


def _records(typed: argparse.Namespace) -> "Records | None":
    """Read the records; None where a card is asked for. Raises InputError for options that belong to the other."""
    card = typed.documents is None
    for name in BELONG_TO_DOCUMENTS if card else BELONG_TO_CARDS:
        if getattr(typed, name) != parser().get_default(name):
            effect = "has no effect without" if card else "has no effect with"
            raise InputError(f"--{name.replace('_', '-')} {effect} --documents; leave it out")
    if card:
        return None
    from position_card.texts.records import read_records

    return read_records(typed.documents)


def _subject(model: Source, typed: argparse.Namespace) -> "tuple[Path, Subject]":
    """Locate and describe a model, with its place. A model of the hub is fetched, and torch is prepared."""
    place, origin = sources.locate(model, typed.revision, typed.out)

    import torch  # seconds, which a name that is not there must not cost

    from position_card.card import subject

    if typed.threads:
        torch.set_num_threads(typed.threads)
    runtime.keep_freed_memory()
    device = typed.device or ("cuda" if torch.cuda.is_available() else "cpu")
    description = (
        place,
        sources.title(model, place),
        origin,
        device,
        typed.precision,
        model.untrained,
        typed.tokenizer,
        typed.gpus,
    )
    return place, subject.read_subject(*description)


def _documents(model: Source, records: "Records", typed: argparse.Namespace) -> list[dict[str, Any]]:
    """Write what the place of documents does in a model, and return it; nothing in a dry run."""
    place, subject = _subject(model, typed)

    from position_card.card.documents_measuring import DocumentsOptions, plan_documents
    from position_card.card.folder import documents_in
    from position_card.models import opening

    name = "standard-input" if typed.documents == "-" else Path(typed.documents).name
    options = DocumentsOptions(typed.rotate, typed.generate, typed.prefix, typed.plain, typed.seed)
    template = opening.chat_template(typed.tokenizer or place)
    plan = plan_documents(subject, records, template, options, name, {"records": typed.documents})
    plan.announce()
    if typed.dry_run:
        return []
    folder = typed.out / model.name / "documents" / Source(name.partition(".jsonl")[0], "named").name
    statistics = documents_in(folder, plan, place, force=typed.force)
    runtime.announce(statistics["decision"])
    runtime.announce(f"read {folder}/documents.md")
    return [statistics]


def _cards(model: Source, text: Callable[[], Text], typed: argparse.Namespace) -> "dict[str, Card]":
    """Write the card of a model, and return it by the name of its folder; none in a dry run."""
    documents, text_name, origin = text()
    place, subject = _subject(model, typed)

    import torch
    from scipy import fft

    from position_card.card.folder import card_in
    from position_card.card.measuring import THOROUGH, CardOptions, plan_card
    from position_card.models import opening

    arguments = {"prompts": typed.prompts, "replace": typed.replace, "recall": typed.recall}
    counts = {name: count for name, count in arguments.items() if count is not None}
    options = CardOptions(
        tuple(typed.lengths),
        tokens_per_batch=typed.tokens_per_batch,
        activation_checkpointing=typed.activation_checkpointing,
        target=typed.target,
        seed=typed.seed,
        questions=not typed.no_questions,
        plain=typed.plain,
        **{**(THOROUGH if typed.thorough else {}), **counts},
    )
    template = partial(opening.chat_template, typed.tokenizer or place)
    plan = plan_card(subject, documents, options, text_name, origin, template)
    plan.announce()
    if typed.dry_run:
        return {}
    folder = typed.out / model.name
    with fft.set_workers(torch.get_num_threads()):
        card = card_in(folder, plan, place, force=typed.force)
    runtime.announce(f"read {folder}/card.md")
    return {model.name: card}


def _statistics(card: "Card") -> dict[str, Any]:
    table = json.loads(card.tables["statistics"].to_json(orient="records", double_precision=15))
    answers = card.questions.statistics if card.questions else None
    return {"model": card.name, "text": card.text, "questions": answers, "statistics": table}


def _least(least: int, greatest: int = sys.maxsize) -> Any:
    """Return a type of whole numbers for a parser, which are at least `least` and at most `greatest`."""

    def number(typed: str) -> int:
        if (value := int(typed)) < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        if value > greatest:
            raise argparse.ArgumentTypeError(f"{value} is more than {greatest}")
        return value

    return number


@contextmanager
def _logging_to_terminal(quiet: bool, verbose: bool) -> Iterator[None]:
    """Say on standard error what a job would write into its log: progress where there is no terminal for a bar."""
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: not hasattr(record, runtime.ANNOUNCED))
    says_all = verbose or not sys.stderr.isatty()
    before = log.level
    log.setLevel(logging.ERROR if quiet else logging.INFO if says_all else logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
