from pathlib import Path

from position_bias.card import beside, measured
from position_bias.card.card import Card
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    cards = [Card(measured.read(Path(path)), **snakemake.params.intervals) for path in snakemake.input.measured]
    folder = Path(snakemake.output.page).parent
    if len(cards) == 1:
        cards[0].save(folder)
    else:
        beside.save(cards, folder, [f"../{name}" for name in snakemake.params.cards])
