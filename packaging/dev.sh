#!/bin/sh
# The project's one command: sets up what is missing, then does the chore that it is told.
# Environment: PYTHON, the interpreter to make .venv with (default: the first python3 that is new enough).
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
cd "$root"

venv=.venv
lock=packaging/requirements.lock
container_lock=packaging/container/requirements.lock
packages=packaging/linux-packages.txt
stamp_file=$venv/.set-up

export UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never PIP_DISABLE_PIP_VERSION_CHECK=1
# Output and file names are UTF-8 even where a bare system has set no locale.
if [ "$(locale charmap 2>/dev/null || echo none)" != UTF-8 ]; then
    export LC_ALL=C.UTF-8
fi

usage() {
    cat <<'EOF'
usage: sh packaging/dev.sh COMMAND [ARGUMENT...]

  run [ARGUMENT...]    start Callboard (arguments go to `callboard run`)
  test [ARGUMENT...]   run the tests on a virtual screen with a keyring (arguments go to pytest)
                       (--agents: with agent frameworks that take minutes to install as well)
  check                lint, formatting, types, and who may import whom
  bench [NAME...]      measure speed and size (`bench --help` tells more)
  conformance          run the protocol's conformance suite through the gateway (needs Node and npm)
  exec COMMAND...      run a command in the project's environment
  lock                 write the lock files in packaging anew from pyproject.toml
  help                 this text

Each one first installs what is missing: Debian packages from packaging/linux-packages.txt,
and Python packages from packaging/requirements.lock into .venv.
EOF
}

say() {
    printf 'dev.sh: %s\n' "$*" >&2
}

die() {
    say "$1"
    exit "${2:-1}"
}

# ---- Debian packages

listed() { # SECTION... -> the packages of these sections, one per line
    awk -v wanted=" $* " '
        { sub(/#.*/, ""); gsub(/^[ \t]+|[ \t]+$/, "") }
        /^\[.*\]$/ { on = index(wanted, " " substr($0, 2, length($0) - 2) " "); next }
        on && $0 != "" { print }
    ' "$packages"
}

ensure_packages() { # SECTION...
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
    need=$(listed "$@")
    # shellcheck disable=SC2086  # one argument for each package
    installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $need 2>/dev/null | sed -n 's/^installed //p')
    missing=
    for package in $need; do
        case "
$installed
" in
        *"
$package
"*) ;;
        *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0

    say "installing Debian packages:$missing"
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "sudo is missing; as root, run: apt-get install --no-install-recommends$missing"
        sudo=sudo
    fi
    # shellcheck disable=SC2086
    install_now() {
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
            </dev/null >"$apt_log" 2>&1
    }
    apt_log=$(mktemp)
    if ! install_now; then
        # An old or absent package list is the usual cause, and fetching one the cure.
        if ! { $sudo apt-get update -qq >"$apt_log" 2>&1 && install_now; }; then
            tail -n 15 "$apt_log" >&2
            rm -f "$apt_log"
            die "these packages could not be installed; check the network and the package sources, then run: ${sudo:+sudo }apt-get update && ${sudo:+sudo }apt-get install --no-install-recommends$missing"
        fi
    fi
    rm -f "$apt_log"
}

# ---- Python and its packages

usable() { # PYTHON -> its real path, if it is new enough and can make a virtual environment
    "$1" -c 'import sys, venv, ensurepip
if sys.version_info < (3, 11): sys.exit(1)
print(sys.executable)' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        usable "$PYTHON" || die "PYTHON=$PYTHON is not a Python of 3.11 or later with its venv module; name another or leave PYTHON unset"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if command -v "$candidate" >/dev/null && usable "$candidate"; then
            return
        fi
    done
    return 1
}

find_uv() { # PYTHON -> a uv command
    if [ -x .uv/bin/uv ] && .uv/bin/uv --version >/dev/null 2>&1; then
        echo .uv/bin/uv
    elif command -v uv >/dev/null; then
        command -v uv
    else
        say "installing uv into .uv"
        rm -rf .uv
        { "$1" -m venv .uv && .uv/bin/python -m pip install -q uv; } >&2 ||
            die "uv could not be installed from PyPI; check the network or pip's settings, or install uv yourself, and try again"
        echo .uv/bin/uv
    fi
}

# The stamp tells whether .venv is what the lock file, pyproject.toml and PYTHON ask for.
wanted_stamp() {
    {
        cat "$lock" pyproject.toml
        "$venv/bin/python" -V
        echo "$root ${PYTHON:-}"
    } 2>/dev/null | cksum
}

is_set_up() {
    [ -x "$venv/bin/python" ] && [ -f "$stamp_file" ] && [ "$(wanted_stamp)" = "$(cat "$stamp_file")" ]
}

set_up() { # SECTION... of the Debian packages
    if is_set_up; then
        ensure_packages "$@"
        return
    fi
    if python=$(find_python); then
        ensure_packages "$@"
    else
        [ -z "${PYTHON:-}" ] || exit 1
        ensure_packages python "$@"
        python=$(find_python) || die "no Python of 3.11 or later with its venv module was found; install one, or name it: PYTHON=/path/to/python3 sh packaging/dev.sh ..."
    fi
    # Two set-ups at once would spoil one another: the second waits, then finds the work done.
    if command -v flock >/dev/null; then
        exec 9>.set-up.lock
        flock 9
    fi
    is_set_up || install_environment "$python"
    exec 9>&-
}

install_environment() { # PYTHON
    uv=$(find_uv "$1")
    say "installing Python packages into $venv"
    quiet=-q
    [ ! -t 2 ] || quiet=
    rm -f "$stamp_file"
    if [ "$(usable "$venv/bin/python")" != "$root/$venv/bin/python" ] || [ "$(base_of "$venv/bin/python")" != "$(base_of "$1")" ]; then
        rm -rf "$venv"
        "$uv" venv -q --python "$1" "$venv" || die "$venv could not be made with $1; name another Python: PYTHON=/path/to/python3 sh packaging/dev.sh ..."
    fi
    # Compiled now, or else the first start takes twice as long.
    # shellcheck disable=SC2086  # no argument if empty
    "$uv" pip sync $quiet --compile-bytecode --require-hashes --python "$venv/bin/python" "$lock" ||
        die "the Python packages could not be installed; check the network or uv's index settings and try again"
    "$uv" pip install -q --no-deps --no-build-isolation --python "$venv/bin/python" --editable . ||
        die "the project itself could not be installed; remove $venv and try again"
    "$venv/bin/python" -m compileall -q app || true
    wanted_stamp >"$stamp_file"
}

base_of() { # PYTHON -> the installation that it belongs to
    "$1" -c 'import sys; print(sys.base_prefix)'
}

# ---- the chores

command=${1:-help}
[ $# -eq 0 ] || shift

case $command in
run)
    if [ "$(uname)" = Linux ] && [ -z "${DISPLAY:-}" ] && [ -z "${WAYLAND_DISPLAY:-}" ]; then
        die "there is no display here (DISPLAY and WAYLAND_DISPLAY are unset); run the engine without a window: sh packaging/dev.sh exec callboard engine" 2
    fi
    set_up runtime
    exec "$venv/bin/callboard" run "$@"
    ;;
test)
    set_up runtime tests
    exec sh packaging/session.sh "$venv/bin/python" -m pytest "$@"
    ;;
check)
    set_up runtime
    failed=
    for tool in "ruff check ." "ruff format --check ." mypy lint-imports; do
        say "$tool"
        # shellcheck disable=SC2086  # a command and its arguments
        "$venv/bin/"$tool || failed="$failed, ${tool%% .}"
    done
    [ -z "$failed" ] || die "failed: ${failed#, }"
    ;;
bench)
    set_up runtime
    exec "$venv/bin/python" -m tests.bench "$@"
    ;;
conformance)
    set_up runtime
    exec "$venv/bin/python" -m tests.conformance "$@"
    ;;
exec)
    [ $# -gt 0 ] || die "exec needs a command to run, such as: sh packaging/dev.sh exec callboard --help" 2
    set_up runtime
    PATH=$root/$venv/bin:$PATH
    VIRTUAL_ENV=$root/$venv
    export PATH VIRTUAL_ENV
    exec "$@"
    ;;
lock)
    python=$(find_python) || die "no Python of 3.11 or later was found; install one and try again"
    uv=$(find_uv "$python")
    "$uv" lock -q "$@"
    "$uv" export -q --frozen --all-groups --no-emit-project --no-header --output-file "$lock"
    # the engine alone: no window, no tests
    "$uv" export -q --frozen --no-default-groups --group build --all-extras --prune pyside6-essentials --prune qasync \
        --no-emit-project --no-header --output-file "$container_lock"
    say "wrote $lock and $container_lock"
    ;;
help | -h | --help)
    usage
    ;;
*)
    usage >&2
    die "there is no command '$command'" 2
    ;;
esac
