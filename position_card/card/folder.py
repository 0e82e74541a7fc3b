"""The folder of a model, with its card or what documents do there: measured once, and read from then on.

The facts of a measurement hold the settings that decide it. A folder that was measured with the same settings is read,
and one that was measured with others is refused.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from position_card.card import documents_measuring, measuring, sources
from position_card.card.card import MEASUREMENTS, Card, load
from position_card.card.documents_measuring import DocumentsPlan
from position_card.card.measuring import CardPlan
from position_card.card.sources import RefusedError, Source
from position_card.card.subject import Subject
from position_card.core.runtime import InputError
from position_card.measures.cost import require_room
from position_card.probe.measurable import measurable

SETTINGS = "settings"  # the fact of a measurement that holds the settings which decide it
UNFINISHED = ".unfinished"  # the folder of checkpoints
DOCUMENT_SETTINGS = ("sha256", "template", "rotate", "generate", "prefix", "plain", "seed", "untrained")  # of facts


def card_in(folder: Path, plan: CardPlan, place: Path, *, force: bool) -> Card:
    """Return the card of the model at a place, whose page, figure and tables are written into a folder anew.

    The model is measured as planned where the folder has no measurements, or where these are to be replaced (`force`).
    Raises InputError where it cannot be measured, and RefusedError where the folder was measured with other settings,
    or is damaged.
    """
    question_facts = plan.questions.facts if plan.questions else {}
    records = {"records": [question_facts.get("sha256"), question_facts.get("template")]}
    settings = _settings(plan.subject, place, {**vars(plan.options), "text": plan.facts["read"], **records})
    if force or not (folder / MEASUREMENTS).exists():
        plan = replace(plan, facts={**plan.facts, SETTINGS: settings})
        measurements = measuring.open_and_measure_card(plan, place, folder / UNFINISHED, measuring.INTERVAL, settings)
        Card(measurements, seed=plan.options.seed).save_measurements(folder)
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    try:
        card = load(folder)
        before = card.measurements.facts.get(SETTINGS, {})
    except InputError as error:
        raise RefusedError(f"{str(error).rpartition('; ')[0]}; type --force to measure anew") from error
    except (ValueError, LookupError, TypeError, OSError) as error:
        raise _damaged(folder / MEASUREMENTS) from error
    _require_same(folder, before, settings)
    card.save_page(folder)
    return card


def documents_in(folder: Path, plan: DocumentsPlan, place: Path, *, force: bool) -> dict[str, Any]:
    """Return the statistics of a file of records in the model at a place, which a folder holds as documents.json.

    They are measured as planned where the folder has none, or where these are to be replaced (`force`). Raises errors
    as `card_in` does.
    """
    settings = _settings(plan.subject, place, {name: plan.facts[name] for name in DOCUMENT_SETTINGS})
    file = folder / "documents.json"
    if force or not file.exists():
        plan = replace(plan, facts={**plan.facts, SETTINGS: settings})
        subject, progress_file = plan.subject, folder / UNFINISHED / "records.safetensors"
        require_room(subject.name, plan.bytes, subject.placed, recomputed=True, precision=subject.precision)
        with measurable(subject.open(place, plan.options.seed, folder)) as decoder:
            documents_measuring.measure_planned_documents(plan, decoder, progress_file, settings).save(folder)
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    try:
        statistics: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        before = statistics["facts"].get(SETTINGS, {})
    except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        raise _damaged(file) from error
    _require_same(folder, before, settings)
    return statistics


def _settings(subject: Subject, place: Path, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides a measurement: `choices`, precision, tokenizer, and the stamp of the model's files."""
    tokenizer = hashlib.sha256(f"{subject.tokenizer.to_str()}{subject.before}".encode()).hexdigest()
    files = sources.stamp(sources.files_of_model(Source(str(place), "path")))
    settings = {**choices, "precision": subject.precision, "tokenizer": tokenizer, "files": files}
    return dict(json.loads(json.dumps(settings)))


def _require_same(folder: Path, before: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise RefusedError where the settings `before` of a folder are not these; it names those that differ."""
    absent = object()  # a setting that another version had, or did not have yet, differs too
    names = [name for name in {**before, **settings} if before.get(name, absent) != settings.get(name, absent)]
    if names:
        raise RefusedError(
            f"{folder} has a card that was measured otherwise ({', '.join(names)}); give another folder (--out), "
            "or --force to replace it"
        )


def _damaged(path: Path) -> RefusedError:
    return RefusedError(f"{path} is damaged; type --force to measure anew")
