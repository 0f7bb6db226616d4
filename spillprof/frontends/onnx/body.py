"""Converts a file's nodes to plain values: unique names, separate constants, model-local functions inlined."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from spillprof.frontends.onnx.node import Body, Node, OperatorKinds
from spillprof.frontends.onnx.proto import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
)
from spillprof.frontends.onnx.stored_tensors import Constant, constant_value, node_constant, sparse_constant
from spillprof.ir.errors import ModelError

MAX_NODES = 1_000_000
"""Limit of nodes after inlining: thirty functions that each call the next twice expand to a billion."""

MAX_CALL_DEPTH = 256
"""Limit of nested function calls."""

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""


def function_key(domain: str, name: str, proto: NodeProto | FunctionProto) -> FunctionKey:
    """The key that a call shares with the function that it calls."""
    return (_domain(domain), name, getattr(proto, "overload", ""))


def check_expansion(graph: GraphProto, functions: Mapping[FunctionKey, FunctionProto]) -> None:
    """``ModelError`` if functions call themselves, call too deep, or expand to too many operators."""
    if not functions:
        _limit(len(graph.node))
        return
    sizes: dict[FunctionKey, int] = {}
    total = 0
    for key in _called(graph.node):
        if key in functions and key not in sizes:
            _measure(key, functions, sizes)
        total += sizes.get(key, 1)
        _limit(total)


def _measure(start: FunctionKey, functions: Mapping[FunctionKey, FunctionProto], sizes: dict[FunctionKey, int]) -> None:
    """Fills in the expanded size of a function and of its callees, innermost first."""
    called = {start: _called(functions[start].node)}
    counted = {start: 1}
    while called:
        key = next(reversed(called))
        inner = next(called[key], None)
        if inner is None:
            del called[key]
            sizes[key] = counted.pop(key)
            if called:
                counted[next(reversed(called))] += sizes[key]
        elif inner in called:
            raise ModelError(f"the function '{inner[1]}' calls itself", where=tuple(k[1] for k in called)[:8])
        elif inner in functions and inner not in sizes:
            if len(called) >= MAX_CALL_DEPTH:
                raise ModelError(f"functions call each other more than {MAX_CALL_DEPTH} deep")
            called[inner] = _called(functions[inner].node)
            counted[inner] = 1
        else:
            counted[key] += sizes.get(inner, 1)
            _limit(counted[key])


def _limit(count: int) -> None:
    if count > MAX_NODES:
        raise ModelError(f"the model's functions expand to more than {MAX_NODES:,} operators")


def _called(nodes: Iterable[NodeProto]) -> Iterator[FunctionKey]:
    """The keys of all nodes, also in bodies."""
    stack = [iter(nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield function_key(node.domain, node.op_type, node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                stack.append(iter(attribute.g.node))
            stack.extend(iter(inner.node) for inner in attribute.graphs)


MAX_STANDARD_VERSION = 999
"""Highest accepted version of the standard operator set; versions above the newest that onnx knows mean its newest."""

MAX_BODY_DEPTH = 64
"""Limit of nested If, Loop and Scan, after inlining."""


def model_body(model: ModelProto) -> Body:
    """The model's main graph, functions inlined. ``ModelError`` for recursion, unknown opsets, exponential growth."""
    functions = {function_key(f.domain, f.name, f): f for f in model.functions}
    if len(functions) != len(model.functions):
        raise ModelError("two functions of the model have the same name")
    check_expansion(model.graph, functions)
    context = _Context(
        opsets=_opsets(model.opset_import),
        functions=functions,
        kinds=OperatorKinds(),
        rename=str,
    )
    return _body(model.graph, context, depth=0)


def node_names(graph: GraphProto) -> list[str]:
    """Unique names of the graph's nodes, in file order."""
    names = _Names(node.name for node in graph.node)
    return [names.take(node, "", index) for index, node in enumerate(graph.node)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """The environment in which nodes are read: operator sets, functions, renaming, arguments of the enclosing call."""

    opsets: Mapping[str, int]
    functions: Mapping[FunctionKey, FunctionProto]
    kinds: OperatorKinds
    rename: Callable[[str], str]
    prefix: str = ""
    arguments: Mapping[str, AttributeProto] | None = None  # of the function call that is being inlined


def _body(graph: GraphProto, context: _Context, depth: int) -> Body:
    if depth > MAX_BODY_DEPTH:
        raise ModelError(
            f"control flow is nested more than {MAX_BODY_DEPTH} deep",
            hint="export the model with fewer nested branches and loops",
        )
    rename = context.rename
    body = Body(
        name=graph.name,
        inputs=tuple((rename(v.name), v.type if v.HasField("type") else None) for v in graph.input),
        outputs=tuple(rename(v.name) for v in graph.output),
    )
    for tensor in graph.initializer:
        _add_constant(body, rename(tensor.name), constant_value(tensor))
    for sparse in graph.sparse_initializer:
        _add_constant(body, rename(sparse.values.name), sparse_constant(sparse))
    body.stored_types.update((rename(v.name), v.type) for v in graph.value_info if v.HasField("type"))
    body.declared_types.update((rename(v.name), v.type) for v in graph.output if v.HasField("type"))
    names = _Names(node.name for node in graph.node)
    for node, inner, name in _inlined(graph.node, context, names):
        outputs = tuple(map(inner.rename, node.output))
        op_type, domain = node.op_type, _domain(node.domain)
        attributes = _attributes(node, inner)
        if domain == "" and op_type == "Constant":
            if len(outputs) != 1:
                raise ModelError("a Constant node needs exactly one output", where=(name,))
            _add_constant(body, outputs[0], node_constant(name, attributes))
            continue
        bodies: tuple[Body, ...] = ()
        if attributes:
            bodies = tuple(
                _body(g, inner, depth + 1) for a in attributes for g in (*([a.g] if a.HasField("g") else ()), *a.graphs)
            )
        version = inner.opsets.get(domain)
        if version is None:
            raise _not_imported(op_type, domain, name)
        kind = context.kinds.kind(op_type, domain, version, attributes)
        inputs = _without_trailing_blanks(tuple(map(inner.rename, node.input)))
        captures = tuple(dict.fromkeys(free for b in bodies for free in b.free_names)) if bodies else ()
        body.nodes.append(Node(name=name, kind=kind, inputs=inputs, outputs=outputs, bodies=bodies, captures=captures))
    body.free_names = _free_names(body)
    return body


def _free_names(body: Body) -> tuple[str, ...]:
    """Names that a body reads from enclosing graphs, in order of appearance."""
    local = {name for name, _ in body.inputs} | body.constants.keys() | {""}
    for node in body.nodes:
        local.update(node.outputs)
    free: dict[str, None] = {}
    for names in (*(names for node in body.nodes for names in (node.inputs, node.captures)), body.outputs):
        for name in names:
            if name not in local:
                free[name] = None
    return tuple(free)


def _inlined(
    nodes: Iterable[NodeProto], context: _Context, names: "_Names"
) -> Iterator[tuple[NodeProto, _Context, str]]:
    """Nodes in file order with the context to read them in; a call is replaced by the nodes of its function."""
    stack = [(enumerate(nodes), context)]
    while stack:
        entries, inner = stack[-1]
        index_and_node = next(entries, None)
        if index_and_node is None:
            stack.pop()
            continue
        index, node = index_and_node
        name = names.take(node, inner.prefix, index)
        function = None
        if inner.functions:
            function = inner.functions.get(function_key(node.domain, node.op_type, node))
        if function is None:
            yield node, inner, name
        else:
            called = _call(node, function, inner, name)
            stack.append((enumerate(_function_nodes(function)), called))


def _call(node: NodeProto, function: FunctionProto, context: _Context, name: str) -> _Context:
    """The environment of a function call: formal names map to actual ones, all others get a prefix."""
    if len(node.input) > len(function.input) or len(node.output) > len(function.output):
        raise ModelError(f"a call of '{function.name}' has more inputs or outputs than the function", where=(name,))
    prefix = f"{name}/"
    mapping = dict.fromkeys(function.input, "")
    mapping.update(zip(function.input, map(context.rename, node.input), strict=False))
    actual_outputs = {f: context.rename(a) for f, a in zip(function.output, node.output, strict=False) if a}
    passed_through = {formal: formal for formal in function.input if formal in actual_outputs}
    mapping.update({f: a for f, a in actual_outputs.items() if f not in passed_through})
    mapping[""] = ""
    arguments = {a.name: a for a in function.attribute_proto}
    arguments.update((a.name, _resolved(a, context)) for a in node.attribute)
    outputs = {_PASSED_THROUGH + f: actual_outputs[f] for f in passed_through}
    mapping.update(outputs)

    def rename(inner_name: str) -> str:
        mapped = mapping.get(inner_name)
        return prefix + inner_name if mapped is None else mapped

    return _Context(
        opsets=_opsets(function.opset_import) or context.opsets,
        functions=context.functions,
        kinds=context.kinds,
        rename=rename,
        prefix=prefix,
        arguments=arguments,
    )


_PASSED_THROUGH = "\0output\0"


def _function_nodes(function: FunctionProto) -> Iterator[NodeProto]:
    """The function's nodes, and an Identity for each output that is an input."""
    yield from function.node
    inputs = set(function.input)
    for output in function.output:
        if output in inputs:
            yield NodeProto(op_type="Identity", input=[output], output=[_PASSED_THROUGH + output])


def _attributes(node: NodeProto, context: _Context) -> tuple[AttributeProto, ...]:
    """The node's attributes, references to attributes of the enclosing call replaced; unset ones are left out."""
    if not node.attribute:
        return ()
    resolved = [_resolved(a, context) for a in node.attribute]
    return tuple(a for a in resolved if not a.ref_attr_name)


def _resolved(attribute: AttributeProto, context: _Context) -> AttributeProto:
    if not attribute.ref_attr_name or context.arguments is None:
        return attribute
    argument = context.arguments.get(attribute.ref_attr_name)
    if argument is None or argument.ref_attr_name:
        return attribute
    if argument.HasField("g") or argument.graphs:
        raise ModelError("a graph is passed to a function as an argument, which is not supported")
    renamed = AttributeProto()
    renamed.CopyFrom(argument)
    renamed.name = attribute.name
    return renamed


def _not_imported(op_type: str, domain: str, name: str) -> ModelError:
    what = f"operator '{op_type}' is of the operator set '{domain or 'ai.onnx'}', which the model does not import"
    return ModelError(what, where=(name,), hint="the exporter must list it in opset_import")


def _add_constant(body: Body, name: str, constant: Constant) -> None:
    if name in body.constants:
        raise ModelError(f"two stored tensors have the name '{name}'")
    body.constants[name] = constant


def _opsets(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    versions = {_domain(entry.domain): entry.version for entry in imports}
    for domain, version in versions.items():
        least, most = (1, MAX_STANDARD_VERSION) if domain == "" else (0, (1 << 31) - 1)
        if not least <= version <= most:
            what = f"the model imports version {version} of the operator set '{domain or 'ai.onnx'}'"
            raise ModelError(what, hint=f"opset_import must hold a version from {least} to {most}: export it again")
    return versions


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _without_trailing_blanks(names: tuple[str, ...]) -> tuple[str, ...]:
    count = len(names)
    while count and not names[count - 1]:
        count -= 1
    return names[:count]


class _Names:
    """Makes node names of one graph unique; names that occur once do not change."""

    def __init__(self, given: Iterable[str]) -> None:
        self._taken: set[str] = set()
        self._reserved = set(given)
        self._next: dict[str, int] = {}

    def take(self, node: NodeProto, prefix: str, index: int) -> str:
        """A unique name for a node, from its own name, else from its type and index."""
        given = node.name
        wanted = name = prefix + (given or f"{node.op_type}_{index}")
        reserved = self._reserved if (prefix or not given) else ()
        while name in self._taken or name in reserved or (name != wanted and name in self._reserved):
            number = self._next.get(wanted, 1)
            self._next[wanted] = number + 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
