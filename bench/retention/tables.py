"""The report on a week, in Markdown."""

from bench.report import number
from bench.retention.costs import MILLION, Costs
from bench.retention.full_scale import A_WEEK, STAGES, gigabytes_a_day, hours_a_week

PLACES = ("queue", "history", "Parquet")
KINDS = ("driver", "Java", "workers")


def tables(costs: Costs) -> str:
    """Return the facts about the machine, the days, and an estimate for the full scale."""
    about = [f"- {name}: {value}" for name, value in costs.about.items()]
    return "\n".join([*about, "", *_by_day(costs), "", *_at_full_scale(costs)])


def _by_day(costs: Costs) -> list[str]:
    heads = [
        "millions so far",
        *(f"{stage} s" for stage in STAGES),
        *(f"{place} MB" for place in PLACES),
        *(f"{kind} MB" for kind in KINDS),
    ]
    lines = [
        "Seconds and sizes are for each million messages of a day; memory is the day's peak.\n",
        f"| {' | '.join(heads)} |",
        "|" + "---:|" * len(heads),
    ]
    for at, day in enumerate(costs.days):
        figures = [
            costs.messages_until(at) / MILLION,
            *(costs.seconds_per_million(stage, at) for stage in STAGES),
            *(costs.megabytes_per_million(place, at) for place in PLACES),
            *(day.memory.get(kind, 0) for kind in KINDS),
        ]
        lines.append(f"| {' | '.join(map(number, figures))} |")
    return lines


def _at_full_scale(costs: Costs) -> list[str]:
    lines = [
        f"At full scale, {A_WEEK / MILLION:,.1f} million messages, if a million costs the same:\n",
        "| | a week | |",
        "|---|---:|---|",
    ]
    for stage, title in STAGES.items():
        hours = hours_a_week(costs, stage)
        lines.append(f"| {title} | {hours:.1f} h | {hours / 168:.1%} of the week |")
    queue, history = (gigabytes_a_day(costs, place) for place in ("queue", "history"))
    parquet = gigabytes_a_day(costs, "Parquet")
    lines += [
        f"| Messages of a day, offered at once | {queue:.0f} GB | in the database |",
        f"| History of a day, until it is archived | {history:.0f} GB | in the database |",
        f"| Archive | {parquet * 7:.0f} GB | in Parquet, {parquet:.1f} GB a day |",
    ]
    return lines
