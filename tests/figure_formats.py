"""To import this draws a figure in every format: matplotlib imports what writes one, and reads fonts, at the first.

Fonts in PDF files then lack what only a text processor needs, such as the kerning of pairs of letters: leaving that out
takes half of the time of a file, and a PDF file has a place for every letter.
"""

import io

import matplotlib.pyplot as plt
from fontTools import subset

OF_TEXT_PROCESSORS = ["GDEF", "GPOS", "GSUB", "MATH", "kern"]

subset.Options._drop_tables_default += OF_TEXT_PROCESSORS
with plt.rc_context({"backend": "agg", "pdf.fonttype": 42}):
    figure = plt.figure()
    figure.suptitle(r"a formula: $\lambda$")
    for suffix in ("pdf", "svg", "png"):
        figure.savefig(io.BytesIO(), format=suffix)
    plt.close(figure)
