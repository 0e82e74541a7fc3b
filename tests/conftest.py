"""Property tests draw new examples in every run, but the same ones in CI: what fails there failed for its change."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
