from callboard.system.child_environment import child_environment

PERSON = {
    "HOME": "/home/x",
    "DISPLAY": ":0",
    "WAYLAND_DISPLAY": "wayland-0",
    "https_proxy": "http://proxy:3128",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/etc/ca.pem",
    "LANG": "de_DE.UTF-8",
    "PYTHONPATH": "/home/x/lib",
    "GITHUB_TOKEN": "ghp_x",
}


def test_what_is_the_persons_passes():
    assert child_environment(PERSON, frozen=False) == PERSON
    assert child_environment(PERSON, frozen=True) == PERSON


def test_what_is_ours_does_not():
    ours = {
        "CALLBOARD_HOME": "/x",
        "CALLBOARD_TOKEN": "secret",
        "QT_QPA_PLATFORM": "offscreen",
        "QT_PLUGIN_PATH": "/x",
        "PYTHONHOME": "/x",
        "_PYI_ARCHIVE_FILE": "/x",
        "NOTIFY_SOCKET": "/run/x",
        "XDG_ACTIVATION_TOKEN": "t",
    }
    assert child_environment({**PERSON, **ours}, frozen=False) == PERSON


def test_a_packed_program_gives_back_the_library_path_that_it_found():
    packed = {"LD_LIBRARY_PATH": "/tmp/_MEI1", "LD_LIBRARY_PATH_ORIG": "/opt/cuda/lib"}
    assert child_environment(packed, frozen=True) == {"LD_LIBRARY_PATH": "/opt/cuda/lib"}
    assert child_environment({"LD_LIBRARY_PATH": "/tmp/_MEI1"}, frozen=True) == {}
    assert child_environment({"LD_LIBRARY_PATH": "/opt/cuda/lib"}, frozen=False) == {"LD_LIBRARY_PATH": "/opt/cuda/lib"}
