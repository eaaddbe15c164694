#!/bin/bash
# SPDX-License-Identifier: MIT
# A small Debian root with Intel's real Level Zero driver, for tests on machines that have no GPU.
#
#   chroot.sh --setup                     make it, or make sure that it is there
#   chroot.sh --run [--bind DIR] CMD...   run CMD inside; each DIR is visible at the same path
#   chroot.sh --root                      print where it is
#   chroot.sh --headers                   print a folder with that suite's level_zero/ headers
#
# It lives outside the source tree, in GPUHOST_TEST_CACHE (default: the user's cache folder), and is
# built aside and renamed when complete, so an interrupted setup is simply begun again. Everything is
# mounted in a private mount namespace and vanishes with the command. Needs root, and the network once;
# without them it says why in one line and exits with 77, which ctest counts as skipped.
set -euo pipefail

suite=forky
packages=libze1,libze-intel-gpu1,libigc2,libze-dev,libjemalloc2
cache=${GPUHOST_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpuhost-tests}
root=$cache/intel-$suite
stamp=$root/.complete
stamp_text="$suite $packages"

skip() {
    echo "SKIP: intel chroot: $*"
    exit 77
}

is_complete() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$stamp_text" ]
}

# Prints the archive that the machine itself installs Debian from: the first source that has the machine's
# own suite and the component main (vendors' sources lack one of them). Both of apt's formats are read.
find_mirror() {
    local files=() codename
    # shellcheck disable=SC1091
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
    for file in /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -r "$file" ] && files+=("$file")
    done
    [ ${#files[@]} -gt 0 ] || return 0
    awk -v codename="$codename" '
        function usable(uri) { return uri ~ /^(https?|file|mirror\+https?):/ && uri !~ /security/ }
        function own_suite(suites) { return (" " suites " ") ~ (" (" codename "|stable|testing|unstable|sid) ") }
        function end_stanza() {
            if (deb && enabled && own_suite(suites) && components ~ /(^| )main( |$)/ && usable(uri)) {
                print uri; found = 1; exit
            }
            deb = 0; enabled = 1; uri = suites = components = ""
        }
        FNR == 1 { end_stanza() }
        /^[ \t]*#/ { next }
        FILENAME ~ /\.sources$/ {
            if (NF == 0) end_stanza()
            else if (tolower($1) == "types:") deb = ($0 ~ /[ \t]deb([ \t]|$)/)
            else if (tolower($1) == "enabled:") enabled = (tolower($2) != "no")
            else if (tolower($1) == "uris:") uri = $2
            else if (tolower($1) == "suites:") { $1 = ""; suites = $0 }
            else if (tolower($1) == "components:") { $1 = ""; components = $0 " " }
            next
        }
        $1 == "deb" {
            line = $0
            sub(/^deb[ \t]+(\[[^]]*\][ \t]+)?/, "", line)
            fields = split(line, word, /[ \t]+/)
            if (usable(word[1]) && own_suite(word[2]))
                for (i = 3; i <= fields; i++)
                    if (word[i] == "main") { print word[1]; found = 1; exit }
        }
        END { if (!found) end_stanza() }
    ' "${files[@]}"
}

# A root that something is still mounted in must not be deleted: the mounts would be emptied with it.
remove_tree() {
    if awk -v dir="$1/" 'index($2, dir) == 1 { found = 1 } END { exit !found }' /proc/mounts; then
        skip "something is mounted under $1, will not rebuild it"
    fi
    rm -rf --one-file-system "$1"
}

setup() {
    is_complete && return 0
    [ "$(id -u)" -eq 0 ] || skip "making a chroot needs root"
    [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || skip "needs a Debian system on amd64"

    mkdir -p "$cache"
    exec 9>"$cache/intel-$suite.lock"
    flock 9
    is_complete && return 0

    if ! command -v debootstrap >/dev/null; then
        apt-get install -y --no-install-recommends debootstrap >"$cache/debootstrap-install.log" 2>&1 ||
            skip "debootstrap is missing and cannot be installed (log: $cache/debootstrap-install.log)"
    fi
    local mirror script log=$cache/intel-$suite.log partial=$root.partial
    mirror=$(find_mirror)
    [ -n "$mirror" ] || skip "apt's sources name no Debian archive to install from"
    # Older debootstrap does not know the suite's name; all recent suites share the script of sid.
    script=/usr/share/debootstrap/scripts/$suite
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid

    remove_tree "$partial"
    remove_tree "$root"
    # In a mount namespace of its own: what debootstrap mounts goes with it, even if it is killed.
    unshare --mount debootstrap --variant=minbase --include="$packages" \
        "$suite" "$partial" "$mirror" "$script" >"$log" 2>&1 ||
        skip "debootstrap failed, is the network there? (log: $log)"
    rm -rf "$partial"/var/cache/apt/archives/*.deb
    echo "$stamp_text" >"$partial/.complete"
    mv "$partial" "$root"
    exec 9>&-
}

# run [--bind DIR]... CMD...
run() {
    local binds=()
    while [ "${1:-}" = --bind ]; do
        binds+=("$2")
        shift 2
    done
    [ "$(id -u)" -eq 0 ] || skip "entering a chroot needs root"
    is_complete || skip "not set up, run $0 --setup"
    unshare --mount true 2>/dev/null || skip "no private mount namespace allowed here"
    # The driver's cache of compiled kernels stays off: each test is to meet the compiler itself.
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec unshare --mount --propagation private bash -c '
        set -euo pipefail
        root=$1 count=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t tmpfs tmpfs "$root/tmp"
        [ -c "$root/dev/null" ] || mount --rbind /dev "$root/dev"
        for ((; count > 0; count--)); do
            mkdir -p "$root$1"
            mount --bind "$1" "$root$1"
            shift
        done
        export NEO_CACHE_PERSISTENT=0 HOME=/root
        exec chroot "$root" "$@"
    ' intel-chroot "$root" ${#binds[@]} "${binds[@]}" "$@"
}

case ${1:-} in
--setup)
    setup
    ;;
--run)
    shift
    run "$@"
    ;;
--root)
    echo "$root"
    ;;
--headers)
    is_complete || skip "not set up, run $0 --setup"
    # A folder of its own: the chroot's libc headers must not get in front of the machine's.
    mkdir -p "$cache/level-zero-headers"
    ln -sfn "$root/usr/include/level_zero" "$cache/level-zero-headers/level_zero"
    echo "$cache/level-zero-headers"
    ;;
*)
    echo "usage: $0 --setup | --run [--bind DIR]... CMD... | --root | --headers" >&2
    exit 2
    ;;
esac
