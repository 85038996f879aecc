import pytest

from callboard.core.uri_template import expand, variables

# the values of RFC 6570, section 3.2
VALUES = {"var": "value", "hello": "Hello World!", "empty": "", "path": "/foo/bar", "x": "1024", "y": "768"}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("map?{x,y}", "map?1024,768"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("X{#hello}", "X#Hello%20World!"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{var*}", "value"),
        ("{undef}", ""),
        ("{?undef}", ""),
        ("{?x,undef}", "?x=1024"),
        ("no variables", "no variables"),
        ("file:///{path}", "file:///%2Ffoo%2Fbar"),
        ("{broken", "{broken"),
    ],
)
def test_a_template_is_filled_in(template: str, uri: str) -> None:
    assert expand(template, VALUES) == uri


def test_a_template_names_its_variables():
    assert variables("note://{user}/{+path}{?page,user,limit:3}") == ["user", "path", "page", "limit"]
    assert variables("note://all") == []
