"""The script that creates roles, and the functions through which a producer's role works."""

import re
from functools import cache
from importlib.resources import files

from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.settling import BY_FUNCTION

OFFERS = ("offer_messages", "offer_messages_with_history")
LOOK = "find_response"

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_TYPES = {
    "due_at": "bigint[]",
    "expires_at": "bigint[]",
    "headers": "text[]",
    "key": "text[]",
    "kind_id": "integer",
    "lock_timeout": "text",
    "note": "text",
    "now": "bigint",
    "payload": "bytea[]",
    "replace": "boolean[]",
}
# An offer returns two columns, and a third one that sends the note and is not passed on. Functions
# of an older version, with other parameters, stay for producers that are not upgraded yet.
_FUNCTION = """\
DROP FUNCTION IF EXISTS {signature};
CREATE FUNCTION {signature} RETURNS TABLE (offered text, is_new boolean)
LANGUAGE plpgsql SECURITY DEFINER
AS $function$
DECLARE
    found record;
BEGIN
    FOR found IN
{query}
    LOOP
        offered := found.key;
        is_new := found.created;
        RETURN NEXT;
    END LOOP;
END
$function$;
"""

_LOOK_TYPES = {"kind_id": "integer", "key": "text", "now": "bigint"}
_LOOK_FUNCTION = """\
DROP FUNCTION IF EXISTS {signature};
CREATE FUNCTION {signature}
RETURNS TABLE (is_pending boolean, payload bytea, reason text, since bigint)
LANGUAGE sql SECURITY DEFINER
AS $function$
{query}
$function$;
"""


@cache
def roles_script() -> str:
    """Return the statements that create roles for producers, consumers and administrators."""
    script = files(__package__).joinpath("roles.sql").read_text("utf-8")
    functions = "\n".join([*map(_definition, OFFERS), _definition_of_look()])
    names = ", ".join([*map(_signature, OFFERS), _signature_of_look()])
    return script.replace("{functions}", functions.rstrip()).replace("{names}", names)


def calls() -> dict[str, str]:
    """Return for each function the query that calls it, with the same parameters."""
    values = ", ".join(f"CAST(:{name} AS {_LOOK_TYPES[name]})" for name in _parameters(LOOK))
    look = f"SELECT * FROM {_function_name(LOOK)}({values})"  # noqa: S608 - all of it is ours
    return {
        **{f"{offer}{BY_FUNCTION}": _call(offer) for offer in OFFERS},
        f"{LOOK}{BY_FUNCTION}": look,
    }


def _definition(offer: str) -> str:
    """Return the definition of a function that runs the same statement as other roles."""
    return _FUNCTION.format(signature=_signature(offer), query=_numbered(offer))


def _definition_of_look() -> str:
    return _LOOK_FUNCTION.format(signature=_signature_of_look(), query=_numbered(LOOK))


def _signature_of_look() -> str:
    types = ", ".join(_LOOK_TYPES[name] for name in _parameters(LOOK))
    return f"{_function_name(LOOK)}({types})"


def _numbered(name: str) -> str:
    """Return a query with numbers for its parameters."""
    names = _parameters(name)
    query = load_queries("postgres")[name]
    return _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", query)


def _call(offer: str) -> str:
    values = ", ".join(f"CAST(:{name} AS {_TYPES[name]})" for name in _parameters(offer))
    return f"SELECT offered, is_new FROM {_function_name(offer)}({values})"  # noqa: S608 - all of it is ours


def _signature(offer: str) -> str:
    types = ", ".join(_TYPES[name] for name in _parameters(offer))
    return f"{_function_name(offer)}({types})"


def _function_name(offer: str) -> str:
    return f"duequeue_{offer}"


def _parameters(offer: str) -> list[str]:
    """Return the parameters in the order in which the query first names them."""
    return list(dict.fromkeys(_PARAMETER.findall(load_queries("postgres")[offer])))
