"""A browser without a window and without a network opens a page that lies on the disk."""

import shutil
import subprocess

from tests import needs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def opened(address, folder):
    """What the page holds after its scripts ran, and the errors of these scripts. `folder` is the browser's own."""
    if CHROMIUM is None:
        needs.lack("chromium", "it is not installed")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--virtual-time-budget=10000"]
    command = [CHROMIUM, *options, f"--user-data-dir={folder}", "--dump-dom", address]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return ended.stdout, [line for line in ended.stderr.splitlines() if "CONSOLE" in line and "error" in line.lower()]
