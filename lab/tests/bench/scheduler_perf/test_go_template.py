"""Templates of manifests: the actions that are understood, and the refusal of all others."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import DecodeError
from moorage_lab.bench.scheduler_perf.go_template import GoTemplate

VALUES: dict[str, Any] = {"Index": 7, "Count": 3.0, "name": "a", "on": True, "list": ["x", "y"]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("plain { text }", "plain { text }", id="no action"),
        pytest.param("pod-{{.Index}}-{{ .name }}", "pod-7-a", id="fields"),
        pytest.param("{{.Count}} {{.on}}", "3 true", id="a whole float and a truth value"),
        pytest.param("{{DivideInt 30000 .Count}}Mi", "10000Mi", id="a function"),
        pytest.param(
            "{{AddInt 1 2}} {{SubtractInt 1 2}} {{MultiplyInt 2 3}} {{Mod 7 4}} {{Int 2.9}}",
            "3 -1 6 3 2",
            id="whole numbers",
        ),
        pytest.param(
            "{{AddFloat 1 0.5}} {{SubtractFloat 1 0.5}} {{MultiplyFloat 2 1.5}} "
            "{{DivideFloat 1 4}}",
            "1.5 0.5 3 0.25",
            id="fractions",
        ),
        pytest.param("{{DivideInt -7 2}} {{Mod -7 2}}", "-3 -1", id="division cuts as in Go"),
        pytest.param("{{div 7 2}} {{mod 7 4}}", "3 3", id="functions of older templates"),
        pytest.param("{{(or .none 1) | Int}}", "1", id="a chain of calls and a missing value"),
        pytest.param("{{.list | JSON}} {{JSON nil}}", '["x","y"] null', id="JSON"),
        pytest.param('{{"a b"}}{{`"raw"`}}', 'a b"raw"', id="literals"),
        pytest.param('{{printf "%03d-%v-%s" .Index .on .name}}', "007-true-a", id="printf"),
        pytest.param("{{if .on}}yes{{else}}no{{end}}", "yes", id="if"),
        pytest.param("{{if .none}}yes{{else}}no{{end}}", "no", id="else"),
        pytest.param(
            "{{if eq .Index 1}}one{{else if eq .Index 7}}seven{{else}}other{{end}}",
            "seven",
            id="else if",
        ),
        pytest.param("{{if and .on (gt .Index 5)}}big{{end}}", "big", id="and, parentheses"),
        pytest.param("{{with .name}}<{{.}}>{{end}}", "<a>", id="with"),
        pytest.param("{{with .none}}<{{.}}>{{else}}{{.name}}{{end}}", "a", id="with nothing"),
        pytest.param("{{range .list}}[{{.}}]{{end}}", "[x][y]", id="range over a list"),
        pytest.param("{{range 3}}{{.}},{{end}}", "0,1,2,", id="range over a number"),
        pytest.param("{{range .none}}x{{else}}none{{end}}", "none", id="range over nothing"),
        pytest.param(
            "{{range $i, $v := .list}}{{$i}}{{$v}}{{$.Index}}{{end}}",
            "0x71y7",
            id="variables of a range, and the outer values",
        ),
        pytest.param("{{$n := AddInt .Index 1}}{{$n}}", "8", id="a variable"),
        pytest.param("a \n{{- .name -}}\n b", "aab", id="trimmed white space"),
        pytest.param("a{{/* not shown */}}b", "ab", id="a comment"),
        pytest.param("{{index .list 1}} {{len .list}} {{not .on}}", "y 2 false", id="others"),
    ],
)
def test_a_template_is_rendered(template: str, text: str) -> None:
    assert GoTemplate(template).render(VALUES) == text


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        pytest.param("{{.Index", "an action is not closed", id="no closing braces"),
        pytest.param("{{if .on}}x", "{{if}} has no end", id="no end"),
        pytest.param("x{{end}}", "{{end}} ends nothing", id="an end too much"),
        pytest.param("{{}}", "an action is empty", id="nothing in an action"),
        pytest.param("{{.name ~}}", "unexpected '~'", id="another character"),
        pytest.param("{{Upper .name}}", "'Upper' is no function", id="an unknown function"),
        pytest.param("{{.missing}}", "a parameter that the template prints", id="a missing value"),
        pytest.param("{{Mod 1 0}}", "Mod: division by zero", id="division by zero"),
        pytest.param('{{AddInt 1 "x"}}', "AddInt: could not convert", id="text as a number"),
        pytest.param("{{.name.first}}", "there is no field 'first'", id="a field of a text"),
        pytest.param("{{$x}}", "undefined variable $x", id="an unknown variable"),
        pytest.param("{{(.name}}", "a parenthesis is not closed", id="an open parenthesis"),
        pytest.param("{{.name | }}", "an action has an empty command", id="an empty command"),
        pytest.param("{{.name )}}", "unexpected ')'", id="a parenthesis too much"),
    ],
)
def test_a_fault_of_a_template_is_told(template: str, fault: str) -> None:
    with pytest.raises(DecodeError) as told:
        GoTemplate(template).render(VALUES)
    assert fault in str(told.value)


def test_a_template_without_actions_is_plain() -> None:
    assert GoTemplate("kind: Pod").is_plain
    assert not GoTemplate("name: {{.Index}}").is_plain
