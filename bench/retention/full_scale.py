"""An estimate for 1,000 messages a second for seven days, from the measured costs."""

from statistics import median

from bench.retention.costs import MILLION, Costs

A_SECOND = 1000
DAYS = 7
A_DAY = 24 * 3600 * A_SECOND
A_WEEK = DAYS * A_DAY
SHARE = 100

STAGES = {
    "offer": "Offer, by Spark",
    "deliver": "Deliver, one consumer",
    "archive": "Archive, by Spark",
    "report": "Report, by Spark",
}


def hours_a_week(costs: Costs, stage: str) -> float:
    """Return how long a stage would take for a week, if a million always costs the same."""
    number = len(costs.days) - 1
    if stage == "report":  # the last report covers all days
        return costs.seconds_per_million(stage, number) * A_WEEK / MILLION / 3600
    usual = median(costs.seconds_per_million(stage, each) for each in range(number + 1))
    return usual * A_WEEK / MILLION / 3600


def gigabytes_a_day(costs: Costs, place: str) -> float:
    """Return how large a day would be, on the same assumption."""
    usual = median(costs.megabytes_per_million(place, each) for each in range(len(costs.days)))
    return usual * A_DAY / MILLION / 1000
