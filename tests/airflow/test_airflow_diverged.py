"""A training that diverges, on a whole Airflow with PostgreSQL: it harms neither its task nor the triggerer."""

import pytest
from airflow_world import MODES

pytestmark = pytest.mark.whole_airflow


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_a_diverged_training_that_succeeds_is_a_success_that_shows_where_it_diverged(world, mode):
    triggerer = world.airflow.pid("triggerer")
    run = world.begin(f"{mode}_diverging")
    run.in_progress()
    assert run.succeed().try_number == 1
    assert run.train.xcom()["result"] == {"loss": None, "note\ufffd": "\ufffd\ufffd", "_type": 1}
    assert run.train.xcom("metrics") == {"Train-accuracy": [[2, 0.5], [3, None], [4, None]]}
    assert run.train.log().count("Train-accuracy is nan in epoch 3: the training has diverged.") == 1
    assert world.airflow.pid("triggerer") == triggerer
