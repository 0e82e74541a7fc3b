from position_bias.language_models import runs

CONFIG = {
    "training": {"snapshots": [100, 0], "steps": 300},
    "models": {"small": {"seeds": [0, 1]}, "smaller": {"seeds": [4]}},
    "hub_models": {"large": {}},
}


def names(*arguments):
    return [str(checkpoint) for checkpoint in runs.checkpoints(CONFIG, *arguments)]


def test_a_model_trained_here_has_seeds_and_one_of_the_hub_none():
    assert names(["large", "small"]) == ["large/hub", "small/seed0/step300", "small/seed1/step300"]
    assert names(["small", "large"], [0, 300])[:3] == ["small/seed0/step0", "small/seed0/step300", "small/seed1/step0"]
    assert names(["large", "smaller"], [0, 100]) == ["smaller/seed4/step0", "smaller/seed4/step100"]


def test_steps_are_in_order_and_the_last_is_the_end():
    assert runs.steps(CONFIG) == [0, 100, 300]


def test_trainings_are_the_seeds_of_models():
    assert [str(training) for training in runs.trainings(CONFIG, ["smaller", "small"])] == [
        "smaller/seed4", "small/seed0", "small/seed1"
    ]  # fmt: skip
