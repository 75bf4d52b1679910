"""Which route a request is for. Paths are matched as they were sent, before they are decoded.

So a key may hold any character: `%2F` in a key is not the slash that separates two parts. A verb is
what follows the last colon of a path, as in `/v1/queues/orders:poll`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from duequeue.server.problems import Problem, malformed, not_found
from duequeue.server.tokens import Scope

# The parameters that take the rest of the path, with its slashes.
TAKES_REST = frozenset({"key"})
LONGEST_REMEMBERED = 200


class Parameter(NamedTuple):
    """A parameter of the query or of the path, for the OpenAPI document."""

    name: str
    schema: Any
    about: str
    required: bool = False
    place: str = "query"


@dataclass(frozen=True)
class Route:
    """What one method of one path does; the types of bodies are for the OpenAPI document too."""

    method: str
    path: str
    handle: Callable[[Any], Awaitable[None]]
    summary: str
    scope: Scope | None = None
    body: Any = None
    answer: Any = None
    other_answers: tuple[tuple[int, Any], ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body_types: tuple[str, ...] = ("application/json",)
    answer_types: tuple[str, ...] = ("application/json",)
    errors: tuple[int, ...] = ()
    open: bool = False  # whether it needs no token
    offline: bool = False  # whether it works while the store is unavailable
    documented: bool = True

    @cached_property
    def query_names(self) -> frozenset[str]:
        """The parameters that may follow the question mark."""
        return frozenset(each.name for each in self.parameters if each.place == "query")


class Match(NamedTuple):
    """A route, and the decoded parts of the path."""

    route: Route
    parts: Mapping[str, str]


@dataclass
class _Node:
    literals: "dict[bytes, _Node]" = field(default_factory=dict)
    parameter: "tuple[str, _Node] | None" = None
    methods: dict[str, Route] = field(default_factory=dict)
    verbs: dict[bytes, dict[str, Route]] = field(default_factory=dict)


class Routes:
    """All routes, as a tree of the parts of their paths."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.all = tuple(routes)
        self._root = _Node()
        for route in self.all:
            self._add(route)
        # Clients that offer and poll use the same few paths again and again.
        self._remembered = lru_cache(maxsize=1000)(self._match)

    def match(self, method: str, raw_path: bytes) -> Match:
        """Find the route of a request, or raise."""
        find = self._remembered if len(raw_path) <= LONGEST_REMEMBERED else self._match
        return find(method, raw_path)

    def _match(self, method: str, raw_path: bytes) -> Match:
        node, parts = self._root, dict[str, str]()
        segments = raw_path.split(b"/")[1:]
        verb = b""
        for place, segment in enumerate(segments):
            is_last = place == len(segments) - 1
            following = node.literals.get(segment)
            if following is None and is_last:
                text, _, after = segment.rpartition(b":")
                if text in node.literals and after in node.literals[text].verbs:
                    following, verb = node.literals[text], after
            if following is not None:
                node = following
                continue
            if node.parameter is None:
                raise not_found("there is nothing at this path")
            name, node = node.parameter
            rest = b"/".join(segments[place:]) if name in TAKES_REST else segment
            if is_last or name in TAKES_REST:
                rest, verb = _split_verb(rest, node)
            parts[name] = _decoded(rest, name)
            if name in TAKES_REST:
                break
        methods = node.verbs[verb] if verb else node.methods
        if not methods:
            raise not_found("there is nothing at this path")
        # The server sends the answer to HEAD without its body, as HTTP wants it.
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allow = ", ".join(sorted(methods))
            raise Problem(
                405,
                "method-not-allowed",
                f"the methods of this path are: {allow}",
                headers={b"allow": allow.encode()},
            )
        return Match(route, parts)

    def _add(self, route: Route) -> None:
        node = self._root
        path, _, verb = route.path.partition(":")
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                name = segment.strip("{}")
                if node.parameter is None:
                    node.parameter = (name, _Node())
                node = node.parameter[1]
            else:
                node = node.literals.setdefault(segment.encode(), _Node())
        methods = node.verbs.setdefault(verb.encode(), {}) if verb else node.methods
        methods[route.method] = route


def _split_verb(raw: bytes, node: _Node) -> tuple[bytes, bytes]:
    text, colon, verb = raw.rpartition(b":")
    return (text, verb) if colon and verb in node.verbs else (raw, b"")


def _decoded(raw: bytes, name: str) -> str:
    try:
        return (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        raise malformed(f"the {name} in the path is not valid UTF-8") from None
