"""Commands as statements: the queries with their parameters written into them.

All values are numbers, or bytes in hexadecimal digits or base 64. So nothing has to be escaped, and
the character sets of a connection do not matter. `queries.sql` explains what its texts may contain.
"""

import re
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from duequeue.stores.sql.catalogue import WITH_HISTORY, catalogue, queries_that
from duequeue.stores.sql.commands import Parameters, Row
from duequeue.stores.sql.mariadb.replies import JOINED_IDS

# Longer lists in an IN are turned into joins, which read the whole table.
MOST_AT_ONCE = 500
# Longer values are sent in base 64, which takes 1.33 characters for a byte instead of two.
LONGEST_IN_HEX = 4096

_ENDS = re.compile(r";\s*(?:\n|$)")
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)
_REPEATED = re.compile(r"\{(.*?)\}", re.DOTALL)
_OF_LEASE = re.compile(r":of_lease\(([a-z_]+)\)")
_PARAMETER = re.compile(r":([a-z_]+)")
_NEW = re.compile(r"\bnew\.(\w+)")
_ALIAS = re.compile(r"\s+AS new\b")
_IDS_OF_HELD = re.compile(r"^SELECT id(?= FROM duequeue_message .* WHERE :held)", re.MULTILINE)


class Statement(NamedTuple):
    """A statement with `%(name)s` for its parameters, and what of it is repeated."""

    text: str
    repeated: tuple[str, ...]
    per_lease: tuple[str, ...]


class PreparedQuery(NamedTuple):
    """The statements of a query, and those that need what the first ones have found."""

    first: tuple[Statement, ...]
    then: tuple[Statement, ...]
    uses_mark: bool
    uses_held: bool


@cache
def prepared(
    name: str, *, is_mysql: bool, joins_ids: bool = False, reads_again: bool = False
) -> PreparedQuery:
    """Return a query as a server takes it.

    With `reads_again`, and always on MySQL, a second statement does what RETURNING does. With
    `joins_ids`, the ids of held messages come back in one row, since each row takes a driver
    some microseconds. A caller's connection may not have the setting that this needs.
    """
    texts = catalogue("mariadb")
    text = texts[name]
    returned = queries_that("returning", "mariadb").get(name)
    if returned and not (is_mysql or reads_again or name.endswith(WITH_HISTORY)):
        text = f"{split(text)[0]}\nRETURNING {returned}"
    if not is_mysql:
        text = _NEW.sub(r"VALUES(\1)", _ALIAS.sub("", text))
    if joins_ids:
        text = _IDS_OF_HELD.sub(f"SELECT GROUP_CONCAT(id) AS {JOINED_IDS}", text)
    parts = [_statement(part) for part in split(text)]
    first = tuple(part for part in parts if "%(found)s" not in part.text)
    return PreparedQuery(first, tuple(parts[len(first) :]), ":mark" in text, ":held" in text)


def split(script: str) -> list[str]:
    """Return the statements of a script, without comments."""
    return [part for part in _ENDS.split(_COMMENT.sub("", script).strip()) if part]


def rendered(statements: Sequence[Statement], parameters: Mapping[str, str]) -> list[str]:
    """Write parameters, which are given as literals, into statements."""
    return [statement.text % parameters for statement in statements]


def rendered_each(
    query: PreparedQuery, common: Mapping[str, str], columns: Sequence[str], each: Sequence[Row]
) -> list[str]:
    """Write the parameters of a chunk of a QueryEach into the first statements."""
    values = dict(zip(columns, map(_literals, zip(*each, strict=True)), strict=True))
    parameters = dict(common)
    if query.uses_held:
        parameters["held"] = _held(values["id"], values["token"])
    for statement in query.first:
        for name in statement.per_lease:
            parameters[f"of_{name}"] = _of_lease(values["id"], values[name])
    texts = []
    for statement in query.first:
        for number, body in enumerate(statement.repeated):
            parameters[f"each_{number}"] = _repeat(body, parameters, values)
        texts.append(statement.text % parameters)
    return texts


def literals(parameters: Parameters, query: PreparedQuery) -> dict[str, str]:
    """Return parameters as literals, with a new mark if the query needs one."""
    found = {name: literal(value) for name, value in parameters.items()}
    if query.uses_mark:
        found["mark"] = str(secrets.randbits(62) + 1)  # drawn as the tokens of leases are
    return found


def literal(value: Any) -> str:
    """Return a value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str):
        value = value.encode()
    if len(value) > LONGEST_IN_HEX:
        return f"FROM_BASE64('{b64encode(value).decode()}')"
    return f"X'{value.hex()}'"


def _statement(text: str) -> Statement:
    repeated = tuple(_with_places(body) for body in _REPEATED.findall(text))
    numbers = iter(range(len(repeated)))
    text = _REPEATED.sub(lambda _: f":each_{next(numbers)}", text.replace("%", "%%"))
    per_lease = tuple(_OF_LEASE.findall(text))
    text = _OF_LEASE.sub(r":of_\1", text)
    return Statement(re.sub(r":([a-z_0-9]+)", r"%(\1)s", text), repeated, per_lease)


def _with_places(text: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))


def _literals(values: Sequence[Any]) -> Sequence[str]:
    """Return a column as literals; many columns have the same value in all rows."""
    if values.count(values[0]) == len(values):
        return [literal(values[0])] * len(values)
    return list(map(literal, values))


@cache
def _names_in(body: str) -> tuple[str, ...]:
    return tuple(re.findall(r"%\((\w+)\)s", body))


def _repeat(body: str, common: Mapping[str, str], values: Mapping[str, Sequence[str]]) -> str:
    """Write a text once for each row, with the common parameters put in only once."""
    # A column becomes `%s`, and each literal below is free of percent signs.
    names = [name for name in _names_in(body) if name in values]
    pattern = body % {**common, **dict.fromkeys(values, "%s")}
    return ", ".join([pattern % row for row in zip(*map(values.__getitem__, names), strict=True)])


def _held(ids: Sequence[str], tokens: Sequence[str]) -> str:
    """Return the condition that a row is one of the given leases, by ids and tokens."""
    among = f"id IN ({', '.join(ids)})"
    if len(set(tokens)) == 1:
        return f"{among} AND lease_token = {tokens[0]}"
    pairs = ", ".join([f"({id_}, {token})" for id_, token in zip(ids, tokens, strict=True)])
    return f"{among} AND (id, lease_token) IN ({pairs})"


def _of_lease(ids: Sequence[str], values: Sequence[str]) -> str:
    """Return the value of a column for the lease with the id of the current row."""
    if len(set(values)) == 1:
        return values[0]
    cases = " ".join([f"WHEN {id_} THEN {value}" for id_, value in zip(ids, values, strict=True)])
    return f"CASE id {cases} END"
