"""Plain functions, coroutines and generators: a function of a request is an agent, any other is a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from callboard.agents.adapters.own import call_with_context
from callboard.agents.contract import AdaptedAgent, Answer, Context
from callboard.agents.signatures import answers_requests, context_parameter, parameters_of, tool_of


def matches(value: Any) -> bool:
    """A function, a bound method, an object that can be called, or a list or mapping of functions that are tools."""
    if isinstance(value, (list, tuple, dict)):
        members = list(value.values()) if isinstance(value, dict) else list(value)
        return bool(members) and all(_is_function(each) and not answers_requests(each) for each in members)
    return _is_function(value)


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """``params`` are bound to the function's parameters of those names, and so are no longer the caller's to give."""
    if isinstance(value, (list, tuple)):
        return FunctionTools({function.__name__: function for function in value}, params)
    if isinstance(value, dict):
        return FunctionTools(dict(value), params)
    if answers_requests(value):
        return FunctionAgent(value, params)
    return FunctionTools({_name(value): value}, params)


def _is_function(value: Any) -> bool:
    if isinstance(value, type) or (type(value).__module__ in ("typing", "types") and not inspect.isroutine(value)):
        return False  # types and aliases of types can be called too
    return callable(value)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


class FunctionAgent(AdaptedAgent):
    """A function, coroutine or generator that answers a request.

    What a generator yields is the answer, as :func:`callboard.agents.parts.yielded` takes it.
    """

    can_run = True

    def __init__(self, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        super().__init__(_name(function), inspect.getdoc(function) or "")
        names = [each.name for each in parameters_of(function)]
        unknown = [name for name in params if name not in names]
        if unknown:
            raise TypeError(f"{self.name}() has no parameter {unknown[0]}")
        self._function = function
        self._params = dict(params)
        self._request = next(each.name for each in parameters_of(function) if each.default is inspect.Parameter.empty)

    def run(self, request: str, context: Context) -> Answer:
        """Call the function."""
        return call_with_context(self._function, {self._request: request, **self._params}, context)


class FunctionTools(AdaptedAgent):
    """Functions that are tools."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], params: Mapping[str, Any]) -> None:
        first = next(iter(functions))
        super().__init__(first if len(functions) == 1 else "tools")
        self._functions = dict(functions)
        self._params: dict[str, dict[str, Any]] = {}
        taken: set[str] = set()
        for name, function in functions.items():
            spec = tool_of(function, name)
            bound = {key: value for key, value in params.items() if key in spec.input_schema["properties"]}
            for key in bound:
                del spec.input_schema["properties"][key]
            needed = [key for key in spec.input_schema.get("required", []) if key not in bound]
            spec.input_schema.pop("required", None)
            if needed:
                spec.input_schema["required"] = needed
            taken |= bound.keys()
            self._params[name] = bound
            self.tools.append(spec)
        self.keeps_conversations = any(map(context_parameter, functions.values()))
        if unknown := [name for name in params if name not in taken]:
            raise TypeError(f"{', '.join(functions)}: there is no parameter {unknown[0]}")

    def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Answer:
        """Call the function of that name."""
        return call_with_context(self._functions[tool], {**arguments, **self._params[tool]}, context)
