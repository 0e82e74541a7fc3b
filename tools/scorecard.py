"""Write docs/scorecard.md from docs/scorecard.csv, the scorecard of the last default run that was kept.

PYTHONPATH=. python tools/scorecard.py > docs/scorecard.md        (make docs)
"""

from pathlib import Path

import pandas as pd

from position_bias.verdicts import pages

ROOT = Path(__file__).parents[1]
FIGURE = "![How many claims of each paper have which verdict](images/scorecard.png)"

if __name__ == "__main__":
    title, _, entries = pages.page(pd.read_csv(ROOT / "docs/scorecard.csv")).partition("\n")
    print(f"{title}\n\n{FIGURE}\n{entries}", end="")
