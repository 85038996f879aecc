import pytest

from callboard.system.batch_command import command_line

CMD = r"C:\Windows\System32\cmd.exe"
NPX = r"C:\Program Files\nodejs\npx.cmd"
HEAD = rf'"{CMD}" /d /e:on /v:off /c ""{NPX}"'


def test_programs_are_started_directly():
    assert command_line([r"C:\Program Files\x.exe", "a b", ""], shell=CMD) == r'"C:\Program Files\x.exe" "a b" ""'


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        ("-y", "-y"),
        ("@scope/pkg", "@scope/pkg"),
        ("", '""'),
        ("a b", '"a b"'),
        ("a&calc", '"a&calc"'),
        ("a^b|c<d>e", '"a^b|c<d>e"'),
        ("(x)", '"(x)"'),
        ("bang!", '"bang!"'),
        ('say "hi"', '"say ""hi"""'),
        ('"&calc&"', '"""&calc&"""'),
        ("%PATH%", '"%%cd:~,%PATH%%cd:~,%"'),
        ("C:\\dir\\", '"C:\\dir\\\\"'),
        ("größe", '"größe"'),
    ],
)
def test_arguments_of_a_batch_file_stay_whole(argument: str, written: str):
    assert command_line([NPX, argument], shell=CMD) == f'{HEAD} {written}"'


def test_a_percent_sign_in_the_path_of_a_batch_file_is_no_variable():
    assert r'""C:\100%%cd:~,%\x.BAT" a"' in command_line([r"C:\100%\x.BAT", "a"], shell=CMD)


@pytest.mark.parametrize("argv", [[NPX, "a\nb"], [NPX, "a\rb"], ['C:\\"x.cmd', "a"]])
def test_what_a_batch_file_cannot_be_given_is_refused(argv: list[str]):
    with pytest.raises(ValueError, match="batch file"):
        command_line(argv, shell=CMD)
