"""From what the roster names, ``package.module:attribute`` or ``path/to/file.py:attribute``, to the agent's object."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

from callboard.agents.adapters import find_adapter
from callboard.agents.contract import LOAD_FAILED, AdaptedAgent, NoToolsError

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  as tracebacks write it


@dataclass(frozen=True)
class Spec:
    """Where an agent is: a module or a file, and the attribute in it; ``called``: the attribute is called for it."""

    module: str
    attribute: str
    called: bool = False

    @property
    def is_file(self) -> bool:
        """True for the path of a file."""
        return self.module.endswith(".py")


class LoadError(Exception):
    """An agent that cannot be loaded; the message says why in one sentence."""

    def __init__(self, message: str, *, kind: str = "", file: str = "", line: int = 0, trace: str = "") -> None:
        super().__init__(message)
        self.wire = {
            "code": LOAD_FAILED,
            "message": message,
            "kind": kind,
            "traceback": trace,
            "file": file,
            "line": line,
        }


def parse_spec(text: str) -> Spec:
    """Read ``module:attribute``; raises LoadError. Without an attribute the module's only agent is meant."""
    module, colon, attribute = text.strip().rpartition(":")
    if not colon or "/" in attribute or "\\" in attribute:  # the colon of a drive letter
        module, attribute = text.strip(), ""
    called = attribute.endswith("()")
    attribute = attribute.removesuffix("()")
    if not module or (attribute and not all(map(str.isidentifier, attribute.split(".")))):
        raise LoadError(f'"{text}" is not of the form package.module:attribute or path/to/file.py:attribute')
    return Spec(module, attribute, called)


def load_agents(text: str, params: Mapping[str, Any]) -> list[AdaptedAgent]:
    """The agents of one entry: usually one, several where the attribute is a list or mapping of agents.

    Raises LoadError with file and line where the agent's own code is to blame.
    """
    spec = parse_spec(text)
    module = import_module(spec)
    value = _attribute(module, spec)
    try:
        if spec.called:
            return adapt_all(value(**params), {}, spec.attribute)
        return adapt_all(value, params, spec.attribute)
    except Exception as error:
        raise failure(error, f"{spec.attribute or spec.module} cannot be used as an agent") from error


async def prepare(agents: list[AdaptedAgent], *, tools: bool = False) -> None:
    """Let agents find out asynchronously what they offer; raises LoadError, also where two have one name.

    ``tools``: also the tools that agents use themselves to answer requests.
    """
    names: set[str] = set()
    for agent in agents:
        try:
            await agent.prepare()
        except Exception as error:
            raise failure(error, f"{agent.name} cannot tell what it offers") from error
        if tools and agent.can_run and not agent.tools:
            await _gather_tools(agent)
        if agent.name in names:
            raise LoadError(f"two agents have the name {agent.name}; name them in a mapping")
        names.add(agent.name)


async def _gather_tools(agent: AdaptedAgent) -> None:
    try:
        agent.tools = await agent.gather_tools()
        agent.has_inner_tools = bool(agent.tools)
    except NoToolsError as error:
        agent.no_tools = str(error)
    except Exception as error:  # noqa: BLE001  it can still be used as a whole
        agent.no_tools = str(failure(error, "its tools cannot be told"))


def import_module(spec: Spec) -> ModuleType:
    """Import the module or file of ``spec``. Raises LoadError."""
    if not spec.is_file:
        _first_on_path(os.getcwd())  # noqa: PTH109  as the interpreter itself does for -m
    try:
        return _import_file(spec.module) if spec.is_file else importlib.import_module(spec.module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not spec.is_file and (spec.module == missing or spec.module.startswith(missing + ".")):
            raise LoadError(
                f"There is no module {spec.module} for {sys.executable} (working folder {os.getcwd()})",  # noqa: PTH109
                kind="ModuleNotFoundError",
            ) from error
        raise failure(error, f"{missing} is not installed for {sys.executable}") from error
    except SystemExit as error:
        raise failure(error, f"{spec.module} ended the program when it was imported") from error
    except Exception as error:
        raise failure(error, f"{spec.module} cannot be imported") from error


def adapt_all(value: Any, params: Mapping[str, Any], name: str = "") -> list[AdaptedAgent]:
    """The agents that ``value`` is; raises TypeError for what is no agent, and what a constructor raises."""
    adapter = find_adapter(value)
    if adapter is not None:
        return [adapter.adapt(value, params)]
    members: list[Any] = []
    if isinstance(gathered := getattr(value, "adapted", None), list):  # a registry
        return gathered
    if isinstance(value, (list, tuple)):
        members = list(value)
    elif isinstance(value, Mapping):
        members = list(value.values())
    if members:
        names = list(value) if isinstance(value, Mapping) else [""] * len(members)
        found = [agent for member in members for agent in adapt_all(member, params, name)]
        for key, agent in zip(names, found, strict=False):
            agent.name = str(key) or agent.name
        return found
    raise TypeError(_not_an_agent(value))


def trimmed(error: BaseException) -> str:
    """The traceback from the agent's own code on: how we got there tells nobody anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _is_ours(file: str) -> bool:
    return file.startswith((_OWN_FOLDER, "<frozen importlib"))


def list_agents(text: str) -> list[dict[str, str]]:
    """The agents in a module or file, each with the name of its attribute and its kind, without making any of them."""
    module = import_module(parse_spec(text))
    found = []
    for name, value in vars(module).items():
        if name.startswith("_") or inspect.ismodule(value):
            continue
        defined = getattr(value, "__module__", module.__name__)
        if (inspect.isclass(value) or inspect.isroutine(value)) and defined != module.__name__:
            continue  # what it only imports
        if isinstance(value, (str, bytes)) or (isinstance(value, (list, tuple, dict)) and not value):
            continue
        adapter = find_adapter(value)
        if adapter is not None:
            documented = inspect.isclass(value) or inspect.isroutine(value)
            text = str(getattr(value, "description", "") or (inspect.getdoc(value) if documented else "") or "")
            kind = str(getattr(adapter, "__name__", "")).rpartition(".")[2]
            found.append({"name": name, "kind": kind, "description": text.partition("\n")[0]})
    return found


def failure(error: BaseException, message: str) -> LoadError:
    """``error`` as a LoadError: the deepest place in code that is neither Python's nor ours."""
    if isinstance(error, LoadError):
        return error
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return LoadError(
            f"{message}: {kind} in {error.filename}, line {error.lineno or 0}: {error.msg}",
            kind=kind,
            file=error.filename,
            line=error.lineno or 0,
            trace="".join(traceback.format_exception_only(type(error), error)),
        )
    file, line = place(error.__traceback__)
    where = f" in {file}, line {line}" if file else ""
    text = " ".join(str(error).split())
    return LoadError(
        f"{message}: {kind}{where}" + (f": {text}" if text else ""),
        kind=kind,
        file=file,
        line=line,
        trace=trimmed(error),
    )


def place(trace: TracebackType | None) -> tuple[str, int]:
    """The deepest frame of an agent's own: ("", 0) if there is none."""
    found = ("", 0)
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    for frame in traceback.extract_tb(trace):
        name = frame.filename
        if name.startswith((_OWN_FOLDER, "<")) or (name.startswith(library) and "site-packages" not in name):
            continue
        if found[0] and "site-packages" in name and "site-packages" not in found[0]:
            continue  # the person's own line says more than the library's beneath it
        found = (name, frame.lineno or 0)
    return found


def _import_file(path: str) -> ModuleType:
    path = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
    if not os.path.isfile(path):  # noqa: PTH113
        raise LoadError(f"There is no file {path}", kind="FileNotFoundError", file=path)
    folder, name = os.path.split(path)
    name = name.removesuffix(".py")
    while os.path.isfile(os.path.join(folder, "__init__.py")):  # noqa: PTH113, PTH118  a file of a package
        folder, package = os.path.split(folder)
        name = f"{package}.{name}"
    _first_on_path(folder)
    if (name.isidentifier() and name not in sys.modules) or "." in name:
        module = importlib.import_module(name)
        if os.path.abspath(getattr(module, "__file__", None) or "") == path:  # noqa: PTH100
            return module
    spec = importlib.util.spec_from_file_location(f"agent_file_{abs(hash(path)):x}", path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is no Python file", file=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _first_on_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _attribute(module: ModuleType, spec: Spec) -> Any:
    if not spec.attribute:
        return _only_agent(module, spec)
    value: Any = module
    for name in spec.attribute.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            names = [each for each in dir(value) if not each.startswith("_")]
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise LoadError(f"{spec.module} has no {name}{hint}", kind="AttributeError") from None
    return value


def _only_agent(module: ModuleType, spec: Spec) -> Any:
    found = [each["name"] for each in list_agents(spec.module)]
    if len(found) == 1:
        return getattr(module, found[0])
    if not found:
        raise LoadError(f"{spec.module} has no agent that is known here; name it as {spec.module}:attribute")
    raise LoadError(
        f"{spec.module} has several agents: name one, as in {spec.module}:{found[0]}; also {', '.join(found[1:])}"
    )


def _not_an_agent(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    wanted = ("get_mcp_tool_definitions", "execute_mcp_tool")
    missing = [name for name in wanted if not callable(getattr(value, name, None))]
    have = " and no ".join(missing)
    return f"{kind.__name__} is no agent that is known here: it is no function of any kind, and has no {have}"
