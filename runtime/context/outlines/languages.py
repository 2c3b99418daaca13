"""The languages that are outlined from their syntax: for each, which of its grammar's nodes are
what.

Node names are those of the tree-sitter grammars that pyproject.toml names. Each is a package of its
own with the parser in
it: the package of all grammars downloads them when they are first used, and a worker must not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_bash
import tree_sitter_c
import tree_sitter_c_sharp
import tree_sitter_cpp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_json
import tree_sitter_kotlin
import tree_sitter_lua
import tree_sitter_php
import tree_sitter_python
import tree_sitter_ruby
import tree_sitter_rust
import tree_sitter_swift
import tree_sitter_toml
import tree_sitter_typescript
import tree_sitter_yaml
from tree_sitter import Language


@dataclass(frozen=True)
class Grammar:
    """A grammar, loaded when it is first used."""

    load: Callable[[], object]

    @cached_property
    def language(self) -> Language:
        """The grammar as tree-sitter takes it."""
        return Language(self.load())


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True)
class CodeLanguage:
    """How a language's syntax tree is read.

    ``definitions`` become items, and what stands in their bodies is read one level deeper;
    ``leaves`` become items as they are; ``outer`` are leaves only where they stand outside every
    definition. ``wrappers`` hold a definition whose text begins with them, ``open`` nodes are read
    as if they were not there. ``carriers`` are the nodes between a definition and its body, and
    ``skipped`` those at a definition's start that are not its own.
    """

    grammar: Grammar
    definitions: frozenset[str]
    leaves: frozenset[str] = frozenset()
    outer: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    carriers: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    """Definitions whose bodies are not read: functions, in languages where they hold no definitions
    worth a line.
    """
    bodies: frozenset[str] = _set("field_declaration_list enumerator_list declaration_list")
    """Nodes that are a definition's body where the grammar has no field of that name."""
    is_python: bool = False
    """Whether documentation stands in bodies, and what is assigned there is a variable."""


_PYTHON = CodeLanguage(
    Grammar(tree_sitter_python.language),
    definitions=_set("class_definition function_definition"),
    leaves=_set("type_alias_statement"),
    open=_set(
        "decorated_definition if_statement elif_clause else_clause try_statement except_clause"
        " finally_clause with_statement block"
    ),
    is_python=True,
)
_SCRIPT_DEFINITIONS = (
    "class_declaration abstract_class_declaration class function_declaration"
    " generator_function_declaration method_definition interface_declaration enum_declaration"
    " internal_module module"
)
_SCRIPT_LEAVES = (
    "public_field_definition field_definition property_signature method_signature"
    " abstract_method_signature function_signature type_alias_declaration enum_assignment"
    " property_identifier"
)
_SCRIPT_CLOSED = _set("function_declaration generator_function_declaration method_definition")
_SCRIPT_OPEN = _set("expression_statement")
_SCRIPT_CARRIERS = _set("variable_declarator arrow_function function_expression function class")


def _script(load: Callable[[], object]) -> CodeLanguage:
    return CodeLanguage(
        Grammar(load),
        definitions=_set(_SCRIPT_DEFINITIONS),
        leaves=_set(_SCRIPT_LEAVES),
        outer=_set("lexical_declaration variable_declaration"),
        wrappers=_set("export_statement ambient_declaration"),
        open=_SCRIPT_OPEN,
        carriers=_SCRIPT_CARRIERS,
        skipped=_set("decorator"),
        closed=_SCRIPT_CLOSED,
    )


_GO = CodeLanguage(
    Grammar(tree_sitter_go.language),
    definitions=_set("function_declaration method_declaration type_declaration"),
    leaves=_set(
        "package_clause const_declaration var_declaration field_declaration method_elem method_spec"
    ),
    carriers=_set("type_spec struct_type interface_type"),
    open=_set("field_declaration_list"),
    closed=_set("function_declaration method_declaration"),
)
_RUST = CodeLanguage(
    Grammar(tree_sitter_rust.language),
    definitions=_set(
        "function_item struct_item enum_item union_item trait_item impl_item mod_item"
        " foreign_mod_item"
    ),
    leaves=_set(
        "function_signature_item const_item static_item type_item associated_type macro_definition"
        " field_declaration enum_variant"
    ),
    closed=_set("function_item"),
)
_JAVA = CodeLanguage(
    Grammar(tree_sitter_java.language),
    definitions=_set(
        "class_declaration interface_declaration enum_declaration record_declaration"
        " annotation_type_declaration method_declaration constructor_declaration"
        " compact_constructor_declaration"
    ),
    leaves=_set(
        "package_declaration field_declaration constant_declaration enum_constant"
        " annotation_type_element_declaration"
    ),
    open=_set("enum_body_declarations"),
    closed=_set("method_declaration constructor_declaration compact_constructor_declaration"),
)
_C_DEFINITIONS = (
    "function_definition type_definition struct_specifier union_specifier enum_specifier"
)
_C_LEAVES = "declaration field_declaration enumerator preproc_def preproc_function_def"
_C_OPEN = (
    "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification"
    " declaration_list field_declaration_list"
)
_C = CodeLanguage(
    Grammar(tree_sitter_c.language),
    definitions=_set(_C_DEFINITIONS),
    leaves=_set(_C_LEAVES),
    open=_set(_C_OPEN),
    carriers=_set("struct_specifier union_specifier enum_specifier"),
    closed=_set("function_definition"),
)
_CPP = CodeLanguage(
    Grammar(tree_sitter_cpp.language),
    definitions=_set(f"{_C_DEFINITIONS} class_specifier namespace_definition concept_definition"),
    leaves=_set(f"{_C_LEAVES} alias_declaration"),
    wrappers=_set("template_declaration"),
    open=_set(_C_OPEN),
    carriers=_set("struct_specifier union_specifier enum_specifier class_specifier"),
    closed=_set("function_definition"),
)
_CSHARP = CodeLanguage(
    Grammar(tree_sitter_c_sharp.language),
    definitions=_set(
        "class_declaration struct_declaration record_declaration interface_declaration"
        " enum_declaration namespace_declaration method_declaration constructor_declaration"
        " destructor_declaration property_declaration indexer_declaration operator_declaration"
        " conversion_operator_declaration local_function_statement"
    ),
    leaves=_set(
        "file_scoped_namespace_declaration field_declaration event_field_declaration"
        " delegate_declaration enum_member_declaration"
    ),
    open=_set("preproc_if preproc_else preproc_elif preproc_region global_statement"),
    skipped=_set("attribute_list"),
    closed=_set(
        "method_declaration constructor_declaration destructor_declaration property_declaration"
        " indexer_declaration operator_declaration conversion_operator_declaration"
        " local_function_statement"
    ),
)
_RUBY = CodeLanguage(
    Grammar(tree_sitter_ruby.language),
    definitions=_set("module class singleton_class method singleton_method"),
    outer=_set("assignment"),
    open=_set("begin if unless then else body_statement"),
    closed=_set("method singleton_method"),
)
_SHELL = CodeLanguage(
    Grammar(tree_sitter_bash.language),
    definitions=_set("function_definition"),
    outer=_set("variable_assignment declaration_command"),
    open=_set("if_statement else_clause elif_clause"),
    closed=_set("function_definition"),
)
_KOTLIN = CodeLanguage(
    Grammar(tree_sitter_kotlin.language),
    definitions=_set(
        "class_declaration object_declaration companion_object function_declaration"
        " secondary_constructor"
    ),
    leaves=_set("package_header property_declaration type_alias enum_entry"),
    closed=_set("function_declaration secondary_constructor"),
    bodies=_set("class_body enum_class_body function_body block"),
)
_PHP = CodeLanguage(
    Grammar(tree_sitter_php.language_php),
    definitions=_set(
        "namespace_definition class_declaration interface_declaration trait_declaration"
        " enum_declaration method_declaration function_definition"
    ),
    leaves=_set("const_declaration property_declaration enum_case"),
    open=_set("if_statement else_clause else_if_clause compound_statement"),
    skipped=_set("attribute_list"),
    closed=_set("method_declaration function_definition"),
)
_SWIFT = CodeLanguage(
    Grammar(tree_sitter_swift.language),
    definitions=_set(
        "class_declaration protocol_declaration function_declaration init_declaration"
        " deinit_declaration subscript_declaration"
    ),
    leaves=_set(
        "property_declaration protocol_property_declaration protocol_function_declaration"
        " typealias_declaration associatedtype_declaration enum_entry"
    ),
    closed=_set("function_declaration init_declaration deinit_declaration subscript_declaration"),
    bodies=_set("computed_property"),
)
_LUA = CodeLanguage(
    Grammar(tree_sitter_lua.language),
    definitions=_set("function_declaration"),
    outer=_set("variable_declaration assignment_statement"),
    open=_set("do_statement if_statement block"),
    carriers=_set("assignment_statement expression_list function_definition"),
    closed=_set("function_declaration"),
)
_JAVASCRIPT = _script(tree_sitter_javascript.language)
_TYPESCRIPT = _script(tree_sitter_typescript.language_typescript)
_TSX = _script(tree_sitter_typescript.language_tsx)

CODE: dict[str, CodeLanguage] = {
    suffix: language
    for suffixes, language in (
        (".py .pyi .pyw", _PYTHON),
        (".js .mjs .cjs .jsx", _JAVASCRIPT),
        (".ts .mts .cts", _TYPESCRIPT),
        (".tsx", _TSX),
        (".go", _GO),
        (".rs", _RUST),
        (".java", _JAVA),
        (".c", _C),
        # A header does not say whether it is C or C++, and C++'s grammar reads nearly all of C.
        (".h .cc .cpp .cxx .hh .hpp .hxx .ino", _CPP),
        (".cs .csx", _CSHARP),
        (".rb .rake .gemspec .ru", _RUBY),
        (".sh .bash .zsh .ksh", _SHELL),
        (".kt .kts", _KOTLIN),
        (".php .phtml", _PHP),
        (".swift", _SWIFT),
        (".lua", _LUA),
    )
    for suffix in suffixes.split()
}
"""Languages by the end of a file's name."""


@dataclass(frozen=True)
class DataLanguage:
    """How a data format's syntax tree is read: ``pairs`` have a key and a value, ``tables`` are
    TOML's sections.

    ``mappings`` and ``lists`` are what a value may be; ``open`` nodes are read as if they were not
    there. ``by_columns``: what is in what is told by the columns in which it begins.
    """

    grammar: Grammar
    pairs: frozenset[str]
    mappings: frozenset[str]
    lists: frozenset[str]
    tables: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    by_columns: bool = False


_JSON = DataLanguage(
    Grammar(tree_sitter_json.language),
    pairs=_set("pair"),
    mappings=_set("object"),
    lists=_set("array"),
)
_YAML = DataLanguage(
    Grammar(tree_sitter_yaml.language),
    pairs=_set("block_mapping_pair flow_pair"),
    mappings=_set("block_mapping flow_mapping"),
    lists=_set("block_sequence flow_sequence"),
    open=_set("document block_node flow_node block_sequence_item"),
    by_columns=True,
)
_TOML = DataLanguage(
    Grammar(tree_sitter_toml.language),
    pairs=_set("pair"),
    mappings=_set("inline_table"),
    lists=_set("array"),
    tables=_set("table table_array_element"),
)

DATA: dict[str, DataLanguage] = {
    ".json": _JSON,
    ".jsonc": _JSON,
    ".ipynb": _JSON,
    ".yaml": _YAML,
    ".yml": _YAML,
    ".toml": _TOML,
}
"""Data formats by the end of a file's name."""

_INTERPRETER = re.compile(
    r"#!.{0,80}?\b(python|node|ruby|perl|php|lua|bash|zsh|ksh|sh)[\d.]{0,8}(?:\s|$)"
)
_SUFFIX_OF = {
    "python": ".py",
    "node": ".js",
    "ruby": ".rb",
    "perl": ".pl",
    "php": ".php",
    "lua": ".lua",
}


def of_interpreter(text: str) -> str:
    """The suffix of the language in which a script's first line says that it is written, or
    ``""``.
    """
    match = _INTERPRETER.match(text[:120])
    return _SUFFIX_OF.get(match[1], ".sh") if match else ""
