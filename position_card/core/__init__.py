"""What every part needs: one-line errors, whole files, checkpoints, devices, provenance."""
