"""To import this draws a figure in every format: matplotlib imports what writes one, and reads fonts, at the first."""

import io

import matplotlib.pyplot as plt

with plt.rc_context({"backend": "agg", "pdf.fonttype": 42}):
    figure = plt.figure()
    figure.suptitle(r"a formula: $\lambda$")
    for suffix in ("pdf", "svg", "png"):
        figure.savefig(io.BytesIO(), format=suffix)
    plt.close(figure)
