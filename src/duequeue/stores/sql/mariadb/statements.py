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

# Longer lists in an IN are turned into joins, which read the whole table. On a connection of the
# caller the limit is 1,000 values, and a lease has two.
MOST_AT_ONCE = 500
MOST_PAIRS = 400
# Longer values are sent in base 64, which takes 1.33 characters for a byte instead of two.
LONGEST_IN_HEX = 4096

# What stands between these is written once for each set of parameters.
EACH, END = "/* each */ ", " /* end */"
FOUND = "%(found)s"
# The value of a column for the lease with the id of the row, and the condition that it has such a
# lease. If all values of the column, or all tokens, are equal, something shorter says the same.
OF_LEASE = "ELT(FIELD(id, %(id)s), %({name})s)"
# On MariaDB, group_concat_max_len limits this, which a caller may have set to a smaller number.
JOINED_IDS = "SELECT JSON_ARRAYAGG(id) AS ids"
HELD = "(id, lease_token) IN (/* each */ (%(id)s, %(token)s) /* end */)"

_PARAMETER = re.compile(r":([a-z_]+)")
_NAME = re.compile(r"%\((\w+)\)s")


class Statement(NamedTuple):
    """A statement with `%(name)s` for its parameters, and `%(each)s` for what is repeated."""

    text: str
    names: tuple[str, ...]
    of_lease: tuple[str, ...]
    each: str = ""
    names_in_each: tuple[str, ...] = ()


class PreparedQuery(NamedTuple):
    """The statements of a query, and those that need what the first ones have found.

    For a single set of parameters, the statement in `alone`, if there is one, does the same, and
    the number of rows that it touches says the rest.
    """

    first: tuple[Statement, ...]
    then: tuple[Statement, ...]
    alone: tuple[Statement, ...]
    deletes_alone: bool
    uses_mark: bool


@cache
def prepared(
    name: str, *, is_mysql: bool, reads_again: bool = False, joins_ids: bool = True
) -> PreparedQuery:
    """Return a query as a server takes it.

    With `reads_again`, and always on MySQL, a second statement does what RETURNING does. Without
    `joins_ids`, the ids of many leases come back in rows.
    """
    has_history, text = name.endswith(WITH_HISTORY), catalogue("mariadb")[name]
    if is_mysql and (other := queries_that("on mysql", "mariadb").get(name)):
        text = catalogue("mariadb")[other + (WITH_HISTORY if has_history else "")]
    if not joins_ids:
        text = text.replace(JOINED_IDS, "SELECT id")
    parts = split(text)
    statements = [_statement(part) for part in parts]
    place = None if has_history else queries_that("alone", "mariadb").get(name)
    alone = {"first": statements[:1], "last": statements[-1:]}.get(place or "", [])
    returned = None if has_history else queries_that("returning", "mariadb").get(name)
    if returned and not (is_mysql or reads_again):
        statements = [_statement(f"{parts[0]}\nRETURNING {returned}")]
    first = tuple(each for each in statements if FOUND not in each.text)
    then = tuple(statements[len(first) :])
    return PreparedQuery(first, then, tuple(alone), place == "last", ":mark" in text)


def split(script: str) -> list[str]:
    """Return the statements of a script, without comments."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join([*lines, ""]).split(";\n") if part.strip()]


def rendered(statements: Sequence[Statement], parameters: Mapping[str, object]) -> list[str]:
    """Write parameters, which are given as literals, into statements."""
    return [statement.text % parameters for statement in statements]


def rendered_each(
    statements: Sequence[Statement],
    common: Mapping[str, object],
    columns: Sequence[str],
    each: Sequence[Row],
) -> list[str]:
    """Write the parameters of a chunk of a QueryEach into statements; a column is a list."""
    values, lists, texts = _literals(columns, each), dict(common), list[str]()
    if any("held" in statement.names for statement in statements):
        lists["held"] = _held(values["id"], values["token"])
    for statement in statements:
        for name in statement.names:
            if name in values and name not in lists:
                lists[name] = ", ".join(values[name])
        for name in statement.of_lease:
            if len(set(values[name])) == 1:
                lists[f"of_{name}"] = values[name][0]
            else:
                lists[f"of_{name}"] = OF_LEASE.format(name=name) % lists
        if not statement.each:
            texts.append(statement.text % lists)
            continue
        # A column becomes `%s`, and the literals are free of percent signs.
        repeated = statement.each % {**common, **dict.fromkeys(values, "%s")}
        names = filter(values.__contains__, statement.names_in_each)
        rows = zip(*map(values.__getitem__, names), strict=True)
        texts.append(statement.text % {**lists, "each": ", ".join(map(repeated.__mod__, rows))})
    return texts


def literals(parameters: Parameters, query: PreparedQuery) -> dict[str, object]:
    """Return parameters as literals, with a new mark if the query needs one."""
    found = dict[str, object](parameters)
    for name, value in parameters.items():
        if type(value) is not int:
            found[name] = "NULL" if value is None else literal(value)
    if query.uses_mark:
        found["mark"] = secrets.randbits(62) + 1  # drawn as the tokens of leases are
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
    """Return a statement with the placeholders of Python in it."""
    text = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
    text = text.replace(HELD, "%(held)s")
    before, begins, rest = text.partition(EACH)
    each, _, after = rest.partition(END)
    names = tuple(_NAME.findall(before + after))
    of_lease = tuple(name for name in names if OF_LEASE.format(name=name) in text)
    text = f"{before}%(each)s{after}" if begins else text
    for name in of_lease:
        text = text.replace(OF_LEASE.format(name=name), f"%(of_{name})s")
    return Statement(text, names, of_lease, each, tuple(_NAME.findall(each)))


def _held(ids: Sequence[str], tokens: Sequence[str]) -> str:
    among = f"id IN ({', '.join(ids)})"
    if len(set(tokens)) == 1:
        return f"{among} AND lease_token = {tokens[0]}"
    pairs = list(map("(%s, %s)".__mod__, zip(ids, tokens, strict=True)))
    lists = (
        ", ".join(pairs[start : start + MOST_PAIRS]) for start in range(0, len(pairs), MOST_PAIRS)
    )
    return f"{among} AND ({' OR '.join(map('(id, lease_token) IN (%s)'.__mod__, lists))})"


def _literals(columns: Sequence[str], each: Sequence[Row]) -> dict[str, list[str]]:
    """Return columns as literals; most have values of one type."""
    found = {}
    for name, values in zip(columns, zip(*each, strict=True), strict=True):
        kinds = set(map(type, values))
        if kinds == {int}:
            found[name] = list(map(str, values))
        elif kinds == {bool}:
            found[name] = list(map("01".__getitem__, values))
        elif values.count(values[0]) == len(values):
            text = "NULL" if values[0] is None else literal(values[0])
            found[name] = [text] * len(values)
        else:
            found[name] = list(map(literal, values))
    return found
