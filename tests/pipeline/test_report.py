"""`report`: the page and its tables, from an archive, a database, or both."""

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet
import pytest
from pyarrow import csv
from pyspark.sql import SparkSession

from duequeue import History, ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import archive, report
from duequeue.pipeline.reporting import job as reporting
from tests.fixtures.stores import on_every_bulk_store
from tests.pipeline.settling import in_database, settle

NEXT_DAY = START + timedelta(days=1)
TABLES = [
    "burial_reasons",
    "by_queue",
    "by_queue_and_attempts",
    "by_queue_and_time",
    "forecast",
    "total",
]
VOID = {"meta", "br"}


class Outline(HTMLParser):
    """What is in a page: its words, what it asks others for, and whether its tags match."""

    def __init__(self, page: Path | str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.asked_for: list[str] = []
        self.plots = 0
        self.open: list[str] = []
        self.feed(Path(page).read_text("utf-8"))
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.plots += tag == "svg"
        self.asked_for += [
            value or ""
            for name, value in attrs
            if name in {"src", "href", "xlink:href"} and not (value or "").startswith("#")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(
        folder / "tables" / f"{name}.parquet"
    ).to_pylist()
    return rows


@on_every_bulk_store
def test_archive_and_database_together_count_each_row_once(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path, clock: ManualClock
) -> None:
    settle(queue, "a", "b")
    archive(spark, url=url, folder=tmp_path / "archive", clock=ManualClock(NEXT_DAY))
    settle(queue, "c")
    clock.set(NEXT_DAY)
    with Queue.open(url, "<b>odd</b> $x$", clock=clock, history=True) as odd:
        odd.offer("d", "x")
        delivery = odd.try_poll()
        assert delivery is not None
        delivery.bury("no such customer")
        odd.offer("e", "x", due=timedelta(hours=2))
    queue.offer("f", "x", due=timedelta(minutes=-5))

    done = report(
        spark, folder=tmp_path / "report", archive=tmp_path / "archive", url=url, clock=clock
    )
    assert (done.page, done.settled) == (tmp_path / "report" / "report.html", 4)
    counted = table(tmp_path / "report", "by_queue")
    assert [(row["queue"], row["settled"], row["buried"]) for row in counted] == [
        ("<b>odd</b> $x$", 1, 1),
        ("orders", 3, 0),
    ]
    ahead = table(tmp_path / "report", "forecast")
    assert [(row["queue"], row["at"], row["messages"], row["overdue"]) for row in ahead] == [
        ("orders", NEXT_DAY, 1, 1),
        ("<b>odd</b> $x$", NEXT_DAY + timedelta(hours=2), 1, 0),
    ]
    page = Outline(done.page)
    assert "4 messages in 2 queues were settled." in page.text
    assert "1 was buried, in <b>odd</b> $x$." in page.text
    assert "2 messages fall due within 24 hours" in page.text
    (reason,) = table(tmp_path / "report", "burial_reasons")
    assert (reason["queue"], reason["burials"]) == ("<b>odd</b> $x$", 1)
    assert "no such customer 1 2 Mar 2026" in page.text
    assert "settled in each hour" in page.text
    assert page.plots == 4
    if password := urlsplit(url).password:
        assert password not in Path(done.page).read_text("utf-8")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_rows_on_their_way_into_the_archive_are_counted_once(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle(queue, "a", "b")
    clock = ManualClock(NEXT_DAY)
    monkeypatch.setattr(History, "remove_day", lambda *_: False)
    archive(spark, url=url, folder=tmp_path / "archive", clock=clock)
    assert in_database(url) == ["a", "b"]
    done = report(spark, folder=tmp_path, archive=tmp_path / "archive", url=url, clock=clock)
    assert done.settled == 2


@pytest.mark.parametrize("step", ["live_rows", "_live", "_archived"])
def test_rows_that_are_archived_while_a_report_reads_are_counted_once(
    spark: SparkSession,
    tmp_path: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    with Queue.open(url, "orders", clock=clock, history=True) as queue:
        settle(queue, "a", "b")
    clock.set(NEXT_DAY)
    (tmp_path / "archive").mkdir()
    real = getattr(reporting, step)

    def then_archive(*arguments: Any) -> Any:
        found = real(*arguments)
        assert archive(spark, url=url, folder=tmp_path / "archive", clock=clock).rows == 2
        return found

    monkeypatch.setattr(reporting, step, then_archive)
    done = report(
        spark, folder=tmp_path / "out", archive=tmp_path / "archive", url=url, clock=clock
    )
    assert in_database(url) == []
    assert done.settled == 2


def test_the_page_asks_nobody_for_anything(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path, clock: ManualClock
) -> None:
    settle(queue, "a")
    done = report(spark, folder=tmp_path / "report", url=url, clock=clock)
    asked_for = Outline(done.page).asked_for
    assert [name for name in asked_for if not name.startswith("tables/")] == []
    assert all((tmp_path / "report" / name).is_file() for name in asked_for)
    written = re.sub(r'(xmlns(:xlink)?)="[^"]*"', "", Path(done.page).read_text("utf-8"))
    assert re.findall(r"https?://|@import|url\((?!#)", written) == []


def test_tables_come_as_parquet_and_as_csv(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path, clock: ManualClock
) -> None:
    settle(queue, "a", "b")
    for _ in range(2):  # a second report replaces the first
        report(spark, folder=tmp_path, url=url, clock=clock)
    names = sorted(each.name for each in (tmp_path / "tables").iterdir())
    assert names == sorted(f"{name}.{kind}" for name in TABLES for kind in ("csv", "parquet"))
    (row,) = csv.read_csv(tmp_path / "tables" / "by_queue.csv").to_pylist()
    assert (row["queue"], row["settled"], row["late_max_ms"]) == ("orders", 2, 0)
    assert {"at_utc", "handling_p50_ms"} <= set(
        csv.read_csv(tmp_path / "tables" / "by_queue_and_time.csv").column_names
    )


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_step_fits_the_time_of_the_messages(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path, clock: ManualClock
) -> None:
    settle(queue, "a")
    clock.advance(timedelta(minutes=3))
    settle(queue, "b")
    fitting = Outline(report(spark, folder=tmp_path, url=url, clock=clock).page)
    assert "settled in each second" in fitting.text
    step = timedelta(days=1)
    chosen = Outline(report(spark, folder=tmp_path, url=url, clock=clock, step=step).page)
    assert "settled in each day" in chosen.text


def test_an_empty_database_gives_an_honest_page(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    done = report(spark, folder=tmp_path, url=url)
    page = Outline(done.page)
    assert done.settled == 0
    assert "No message was settled in this time" in page.text
    assert "Nothing is scheduled for the next 24 hours." in page.text
    assert page.plots == 0


def test_an_archive_alone_will_do(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    settle(queue, "a")
    clock = ManualClock(NEXT_DAY)
    archive(spark, url=url, folder=tmp_path / "archive", clock=clock)
    done = report(spark, folder=tmp_path, archive=tmp_path / "archive", clock=clock)
    assert done.settled == 1
    clock.advance(timedelta(days=7))
    assert report(spark, folder=tmp_path, archive=tmp_path / "archive", clock=clock).settled == 0


def test_relative_paths_are_those_of_this_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java, and what it starts, may have been started in another folder."""
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///shop.db"
    with Queue.open(url, "orders", history=True) as queue:
        settle(queue, "a")
        queue.offer("b", "x", due=timedelta(hours=1))
        archive(spark, url=url, folder="archive", include_today=True)
        settle(queue, "c")
    assert report(spark, folder="report", archive="archive", url=url).settled == 2
    assert [row["messages"] for row in table(tmp_path / "report", "forecast")] == [1]
    assert (tmp_path / "archive").is_dir()


def test_a_report_goes_to_a_url_of_this_machine(
    spark: SparkSession, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    with Queue.open(url, "orders", clock=clock, history=True) as queue:
        settle(queue, "a", "b")
    target = tmp_path / "reports" / "daily"
    report(spark, folder=target.as_uri(), url=url, clock=clock)
    done = report(spark, folder=target.as_uri(), url=url, clock=clock)  # replaces the first
    assert (done.page, done.settled) == (f"{target.as_uri()}/report.html", 2)
    assert "2 messages in 1 queue were settled." in Outline(target / "report.html").text
    assert [row["settled"] for row in table(target, "by_queue")] == [2]
    assert list((tmp_path / "here").iterdir()) == []


def test_a_report_goes_to_another_file_system(
    spark: SparkSession, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop's own view of several file systems stands for one on other machines."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    java: Any = spark.sparkContext
    settings = java._jsc.hadoopConfiguration()  # noqa: SLF001 - as the pipeline itself does
    settings.set("fs.viewfs.mounttable.reports.link./there", (tmp_path / "there").as_uri())
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    with Queue.open(url, "orders", clock=clock, history=True) as queue:
        settle(queue, "a", "b")
    there = "viewfs://reports/there/daily/"
    report(spark, folder=there, url=url, clock=clock)
    done = report(spark, folder=there, url=url, clock=clock)  # replaces the first
    assert (done.page, done.settled) == ("viewfs://reports/there/daily/report.html", 2)
    target = tmp_path / "there" / "daily"
    assert "2 messages in 1 queue were settled." in Outline(target / "report.html").text
    assert [row["settled"] for row in table(target, "by_queue")] == [2]
    assert sorted(each.stem for each in (target / "tables").glob("*.csv")) == TABLES
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("folder", ["nosuch://host/report", "hdfs:///report"])
def test_a_file_system_that_spark_does_not_reach_is_refused_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"^folder .*{folder.partition(':')[0]}.* local path"):
        report(spark, folder=folder, url=f"sqlite:///{tmp_path / 'queue.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_local_folder_may_have_a_colon_in_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = report(spark, folder="at-10:30", url=f"sqlite:///{tmp_path / 'queue.db'}")
    assert done.page == Path("at-10:30", "report.html")
    assert (tmp_path / done.page).is_file()


def test_bad_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give an archive, a url, or both"):
        report(spark, folder=tmp_path)
    with pytest.raises(ValueError, match=r"archive .*nowhere does not exist"):
        report(spark, folder=tmp_path, archive=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="days must be a whole number above 0"):
        report(spark, folder=tmp_path, archive=tmp_path, days=0)
    with pytest.raises(
        ValueError, match="step must be one day or one hour or one minute or one second"
    ):
        report(spark, folder=tmp_path, archive=tmp_path, step=timedelta(minutes=5))
    with pytest.raises(ValueError, match="other processes cannot reach"):
        report(spark, folder=tmp_path, url="memory:")
    assert list(tmp_path.iterdir()) == []
