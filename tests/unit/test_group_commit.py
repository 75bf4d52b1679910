"""Which offer starts at once, which offers share a commit, and that none is left behind."""

from time import monotonic

from duequeue.flows.group_commit import MOST_FOLLOWERS, PATIENCE, GroupCommit, PendingOffer
from duequeue.message import OfferOutcome
from duequeue.port.store import Record

CREATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.IGNORED


def wait(commits: GroupCommit, *keys: str) -> list[PendingOffer]:
    return [commits.wait(Record(key, b"", 0)) for key in keys]


def test_an_offer_that_waits_alone_starts_at_once() -> None:
    commits = GroupCommit()
    (alone,) = wait(commits, "a")
    assert commits.start(alone, 0.0) == [alone]


def test_offers_that_arrive_meanwhile_share_a_commit() -> None:
    commits = GroupCommit()
    (leader,) = wait(commits, "a")
    first = commits.start(leader, 0.0)
    late = wait(commits, "b", "c", "d")
    assert commits.start(late[0], PATIENCE / 2) == []
    commits.finish(first, [CREATED])
    assert commits.start(late[0], PATIENCE / 2) == late


def test_a_follower_leads_no_group() -> None:
    commits = GroupCommit()
    leader, taken = wait(commits, "a", "b")
    commits.start(leader, 0.0)
    wait(commits, "c")
    assert commits.start(taken, PATIENCE) == []


def test_every_member_gets_its_outcome() -> None:
    commits = GroupCommit()
    group = wait(commits, "a", "b")
    heard = [offer.bell.rings for offer in group]
    commits.finish(commits.start(group[0], 0.0), [CREATED, IGNORED])
    assert [offer.outcome for offer in group] == [CREATED, IGNORED]
    assert not any(offer.waits for offer in group)
    assert all(one.bell.rings > before for one, before in zip(group, heard, strict=True))


def test_a_commit_that_failed_leaves_each_member_alone() -> None:
    commits = GroupCommit()
    group = wait(commits, "a", "b")
    commits.finish(commits.start(group[0], 0.0), [])
    assert [(one.outcome, one.left_alone) for one in group] == [(None, True)] * 2


def test_a_leader_that_withdraws_leaves_its_followers_alone() -> None:
    commits = GroupCommit()
    leader, taken = wait(commits, "a", "b")
    commits.start(leader, 0.0)
    commits.withdraw(leader)
    assert taken.left_alone
    assert taken.bell.rings == 1
    (late,) = wait(commits, "c")
    assert commits.start(late, 0.0) == [late]


def test_a_leader_that_withdraws_afterwards_changes_nothing() -> None:
    commits = GroupCommit()
    leader, taken = wait(commits, "a", "b")
    commits.finish(commits.start(leader, 0.0), [CREATED, CREATED])
    commits.withdraw(leader)
    assert (taken.outcome, taken.left_alone) == (CREATED, False)


def test_the_end_of_a_commit_wakes_the_first_that_waits() -> None:
    commits = GroupCommit()
    (leader,) = wait(commits, "a")
    group = commits.start(leader, 0.0)
    first, second = wait(commits, "b", "c")
    commits.finish(group, [CREATED])
    assert (first.bell.rings, second.bell.rings) == (1, 0)


def test_an_offer_that_withdraws_wakes_the_next() -> None:
    commits = GroupCommit()
    (leader,) = wait(commits, "a")
    group = commits.start(leader, 0.0)
    first, second = wait(commits, "b", "c")
    commits.finish(group, [CREATED])
    commits.withdraw(first)
    assert second.bell.rings == 1
    assert commits.start(second, 0.0) == [second]


def test_no_offer_waits_for_long_for_a_commit_that_does_not_end() -> None:
    commits = GroupCommit()
    (leader,) = wait(commits, "a")
    stuck = commits.start(leader, 0.0)
    (late,) = wait(commits, "b")
    beside = commits.start(late, PATIENCE)
    assert beside == [late]
    (third,) = wait(commits, "c")
    commits.finish(stuck, [CREATED])  # ends while the other one is under way
    assert commits.start(third, PATIENCE) == []
    commits.finish(beside, [CREATED])
    assert commits.start(third, PATIENCE) == [third]


def test_a_group_has_a_limit_and_its_leader_is_in_it() -> None:
    commits = GroupCommit()
    *_, last = wait(commits, *map(str, range(MOST_FOLLOWERS + 2)))
    first = commits.start(last, 0.0)
    assert len(first) == MOST_FOLLOWERS + 1
    assert last in first


def test_an_offer_starts_alone_only_if_none_is_under_way_or_waits() -> None:
    commits = GroupCommit()
    alone = commits.start_alone()
    assert alone is not None
    assert commits.start_alone() is None
    (late,) = wait(commits, "a")
    commits.finish_alone(alone)
    assert late.bell.rings == 1
    assert commits.start_alone() is None
    assert commits.start(late, 0.0) == [late]


def test_an_offer_that_started_alone_and_ends_late_ends_no_other_commit() -> None:
    commits = GroupCommit()
    slow = commits.start_alone()
    (late,) = wait(commits, "a")
    beside = commits.start(late, monotonic() + PATIENCE)
    commits.finish(beside, [CREATED])
    assert commits.start_alone() is not None
    commits.finish_alone(slow)
    assert commits.start_alone() is None, "the later one is still under way"
