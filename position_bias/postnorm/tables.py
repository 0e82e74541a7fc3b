"""These are the columns of the tables that trainings and the construction write, as checks and figures read them."""

TESTS = ["task", "scheme", "seed", "length", "quantity", "value", "trained"]  # trained: the length in training
DIMENSION = [*TESTS, "width"]
AVERAGING = [*TESTS, "decay", "weights", "eta"]
DEPTH = ["scheme", "seed", "deeper", "quantity", "value"]
STABILITY = ["scheme", "layers", "learning_rate", "seed", "iteration", "loss", "gradient_norm"]
CONSTRUCTION = ["scheme", "v", "length", "predicted", "measured", "low", "high"]
