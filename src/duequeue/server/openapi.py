"""The OpenAPI document, made from the routes and from the types that read and write bodies."""

from importlib.metadata import version
from typing import Any

import msgspec

from duequeue.server.problems import ProblemDetails
from duequeue.server.routing import Parameter, Route, Routes

_REFERENCE = "#/components/schemas/{name}"
# What may go wrong with any request that needs a token, and with one that has a body.
_ERRORS = {
    400: "The request cannot be read",
    401: "There is no valid token",
    403: "The token does not allow this",
    422: "An argument is not valid",
    500: "The server failed",
    503: "The store is unavailable, or the server is stopping",
}
_BODY_ERRORS = {408: "The body came too slowly", 413: "The body is too long"}
_OTHER_ERRORS = {
    404: "It is not there",
    409: "It is in a state that does not allow this",
    429: "Too many requests are already waiting",
}


def description(routes: Routes) -> bytes:
    """Return the document."""
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes.all:
        if route.documented:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "DueQueue",
            "version": version("duequeue"),
            "description": "Delivers messages when they are due.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


class _Schemas:
    """The JSON schema of every type that occurs in the routes."""

    def __init__(self, routes: Routes) -> None:
        types: list[Any] = [ProblemDetails]
        for route in routes.all:
            types += [route.body, route.answer, *(kind for _, kind in route.other_answers)]
            types += [parameter.schema for parameter in route.parameters]
        self._types = [each for each in types if each not in (None, object)]
        found, self.components = msgspec.json.schema_components(
            self._types, ref_template=_REFERENCE
        )
        self._found = list(found)

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        return {} if kind is object else self._found[self._types.index(kind)]


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "parameters": [_parameter(each, schemas) for each in route.parameters],
        "responses": _responses(route, schemas),
    }
    if route.open:
        operation["security"] = []
    if route.body is not None:
        operation["requestBody"] = {
            "required": route.path.endswith("messages"),
            "content": {each: {"schema": _body(route, each, schemas)} for each in route.body_types},
        }
    return operation


def _body(route: Route, content_type: str, schemas: _Schemas) -> dict[str, Any]:
    """Return the schema of a body; one that is not structured is a text or bytes."""
    if content_type in {"application/x-ndjson", "application/octet-stream"}:
        return {"type": "string"}
    return schemas.of(route.body)


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    found = {
        str(status): {
            "description": "Done" if status < 300 else "Not ready",  # noqa: PLR2004 - a status
            "content": {each: {"schema": schemas.of(kind)} for each in route.answer_types},
        }
        for status, kind in ((200, route.answer), *route.other_answers)
    }
    errors = {} if route.open else dict(_ERRORS)
    if route.body is not None or route.method == "POST":
        errors |= _BODY_ERRORS
    errors |= {status: _OTHER_ERRORS[status] for status in route.errors}
    content = {"application/problem+json": {"schema": schemas.of(ProblemDetails)}}
    for status, text in errors.items():
        found.setdefault(str(status), {"description": text, "content": content})
    return found


def _parameter(parameter: Parameter, schemas: _Schemas) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.about,
        "schema": schemas.of(parameter.schema),
    }


def _operation_id(route: Route) -> str:
    words = route.path.replace("/v1", "").replace("{", "").replace("}", "")
    parts = [part for part in words.replace(":", "/").replace("-", "/").split("/") if part]
    return "_".join([route.method.lower(), *parts]).replace(".", "_")
