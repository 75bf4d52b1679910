"""Numbers in the text format of Prometheus."""

from duequeue.server.exposition import BOUNDS, Histogram


def test_a_bucket_holds_everything_up_to_its_bound() -> None:
    values = Histogram()
    for value in (0.0, BOUNDS[0], BOUNDS[0] + 0.001, BOUNDS[-1] + 1):
        values.add(value)
    counts = [line.rpartition(" ")[2] for line in values.lines("seconds", {})]
    assert counts == ["2", *["3"] * (len(BOUNDS) - 1), "4", "61.011000", "4"]
