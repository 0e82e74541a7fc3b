"""Dry runs of Snakemake, which takes as long to import as to plan: a process imports it once and forks for each plan.

It reads lines of JSON, each with a folder, arguments, variables of the environment, and a file for what is printed.
It answers each line with the exit status.
"""

import gc
import json
import os
import sys
from importlib import import_module


def dry_run(folder, arguments, environment, printed):
    """What `snakemake` does in a process of its own; ends this process."""
    os.chdir(folder)
    os.environ.update(environment)
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for to, descriptor in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(to, descriptor)
    sys.argv = ["snakemake", *arguments]
    sys.exit(import_module("snakemake_command").main())


def main():
    """Answer until there is nothing more to read."""
    import_module("snakemake.cli").get_argument_parser()  # it looks for plugins, once
    import_module("smart_open")  # and every plan opens files of configuration by it
    gc.freeze()  # else each fork looks for what is free among all that is imported
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            dry_run(**json.loads(line))
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
