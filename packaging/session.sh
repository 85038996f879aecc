#!/bin/sh
# usage: sh packaging/session.sh COMMAND [ARGUMENT...]
# Runs a command in a desktop session of its own: a virtual screen, a session bus and an unlocked, empty keyring.
# Nothing of the person's own session is seen or touched, and nothing of this one is left afterwards.
set -eu

if [ "${CALLBOARD_TEST_SESSION:-}" != starting ]; then
    for tool in xvfb-run xauth dbus-run-session gnome-keyring-daemon; do
        command -v "$tool" >/dev/null || {
            echo "session.sh: $tool is missing; install the packages under [tests] in packaging/linux-packages.txt" >&2
            exit 1
        }
    done
    session=$(mktemp -d)
    trap 'rm -rf "$session"' EXIT
    mkdir -m 700 "$session/runtime" "$session/data"
    unset WAYLAND_DISPLAY DESKTOP_SESSION SESSION_MANAGER XDG_CURRENT_DESKTOP XDG_SESSION_TYPE GTK_MODULES
    unset QT_QPA_PLATFORMTHEME QT_STYLE_OVERRIDE QT_SCALE_FACTOR QT_FONT_DPI GNOME_KEYRING_CONTROL
    status=0
    XDG_RUNTIME_DIR=$session/runtime XDG_DATA_HOME=$session/data QT_QPA_PLATFORM=xcb NO_AT_BRIDGE=1 \
        CALLBOARD_TEST_SESSION=starting \
        xvfb-run -a -s "-screen 0 1280x800x24 -nolisten tcp -noreset" dbus-run-session -- sh "$0" "$@" || status=$?
    exit "$status"
fi

# Inside: the bus and the screen are up. The daemon takes the password on its standard input and goes on by itself.
printf %s keyring-password |
    gnome-keyring-daemon --unlock --components=secrets >"$XDG_RUNTIME_DIR/keyring.log" 2>&1 || {
    cat "$XDG_RUNTIME_DIR/keyring.log" >&2
    echo "session.sh: the keyring did not start" >&2
    exit 1
}
# It returns before its keyring is there; whoever wants to keep a secret until then is asked to make one first.
# (Asking for the secrets' service itself before it is on the bus would start a second one.)
ask() {
    dbus-send --session --print-reply=literal "$@" 2>/dev/null
}
keyring_is_there() {
    ask --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner string:org.freedesktop.secrets | grep -q true &&
        ask --dest=org.freedesktop.secrets /org/freedesktop/secrets \
            org.freedesktop.Secret.Service.ReadAlias string:default | grep -q /collection/
}
tries=0
until keyring_is_there; do
    tries=$((tries + 1))
    [ "$tries" -le 200 ] || {
        echo "session.sh: the keyring did not come onto the bus" >&2
        exit 1
    }
    sleep 0.05
done
CALLBOARD_TEST_SESSION=ready
export CALLBOARD_TEST_SESSION
exec "$@"
