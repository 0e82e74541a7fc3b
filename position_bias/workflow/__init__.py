"""How a job runs: its log and seed, the files it reads and writes, its configuration, devices and checkpoints."""
