#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Lays Julia 1.5.3 (the one in Debian's bullseye suite) into a folder of the
# cache and prints the path of a launcher for it. Julia deep-binds its own
# libraries, so this is the program that other preloaded allocators abort.
#
# The files come from the machine's own Debian mirror, checked against Debian's
# keyring, through an apt configuration of our own: the machine's package state
# is neither read nor changed. That suite's libc, libstdc++ and libgcc are left
# out; this machine's newer ones serve them. Idempotent. Exit 77: cannot, why.
set -euo pipefail

cache=${GPUHOST_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuhost-tests}
dir=$cache/julia-1.5.3
launcher=$dir/julia

skip() { printf 'skip: %s\n' "$*" >&2; exit 77; }

if [[ -x $launcher ]]; then
	printf '%s\n' "$launcher"
	exit 0
fi

[[ $(uname -m) == x86_64 ]] || skip "julia 1.5.3 is tested on x86_64 only"
for tool in apt-get dpkg-deb flock; do
	command -v "$tool" >/dev/null || skip "no $tool: not a Debian machine"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -r $keyring ]] || skip "no $keyring"

# The first Debian mirror that the machine's apt sources name, whose line or
# paragraph mentions a Debian suite (old format or deb822).
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
	awk '
	BEGIN { suite = "^(bookworm|trixie|forky|sid|testing|unstable|stable)$" }
	$1 == "deb" { # deb [options] URI SUITE ...
		for (i = 2; i < NF; i++) if ($i ~ /^https?:/ && $(i + 1) ~ suite) { print $i; exit }
	}
	tolower($1) == "uris:" { uri = $2 }
	tolower($1) == "suites:" { for (i = 2; i <= NF; i++) if ($i ~ suite) found = 1 }
	uri != "" && found { print uri; exit }
	/^[ \t]*$/ { uri = ""; found = 0 }' || true)
[[ -n $mirror ]] || skip "no Debian mirror among the machine's apt sources"

mkdir -p "$cache"
exec 9>"$cache/julia.lock"
flock 9
if [[ -x $launcher ]]; then # another test laid it while we waited
	printf '%s\n' "$launcher"
	exit 0
fi

work=$(mktemp -d "$cache/julia-work.XXXXXX")
trap 'rm -rf "$work"' EXIT
# apt fetches as its own user when root; it must reach the folder.
chmod 755 "$work"
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/files"
printf 'deb [signed-by=%s] %s bullseye main\n' "$keyring" "$mirror" >"$work/sources.list"

# An empty status file makes apt fetch the whole dependency tree.
apt_private() {
	apt-get -q -y \
		-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State="$work/state" -o Dir::Cache="$work/cache" \
		-o Dir::State::status=/dev/null -o Dir::Etc::preferences=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o APT::Default-Release= \
		-o APT::Sandbox::User=root "$@" >"$work/log" 2>&1
}
apt_private update || skip "the mirror has no bullseye suite: $(grep -m1 '^[EW]:' "$work/log" || true)"
apt_private --no-install-recommends --download-only install julia libopenblas0-pthread ||
	skip "julia cannot be fetched: $(grep -m1 '^E:' "$work/log" || true)"

for deb in "$work"/cache/archives/*.deb; do
	case ${deb##*/} in
	libc6_* | libstdc++6_* | libgcc-s1_* | gcc-*-base_* | dpkg_* | tar_* | perl-base_* | debconf_*) ;;
	*) dpkg-deb --extract "$deb" "$work/files" ;;
	esac
done

lib=usr/lib/x86_64-linux-gnu
cat >"$work/files/julia" <<'LAUNCHER'
#!/bin/sh
# Runs the Julia beside this file with its own libraries before the system's.
here=$(dirname "$(readlink -f "$0")")
lib=$here/usr/lib/x86_64-linux-gnu
LD_LIBRARY_PATH=$lib:$here/lib/x86_64-linux-gnu:$lib/julia:$lib/openblas-pthread${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/usr/bin/julia" "$@"
LAUNCHER
chmod 755 "$work/files/julia" "$work/files"
[[ -x $work/files/usr/bin/julia && -d $work/files/$lib/julia ]] || skip "the package is not laid out as expected"
version=$("$work/files/julia" --startup-file=no -e 'print(VERSION)' 2>&1) ||
	skip "julia does not start here: $version"
[[ $version == 1.5.3* ]] || skip "bullseye's julia is $version, not 1.5.3"

rm -rf "$dir"
mv "$work/files" "$dir"
printf '%s\n' "$launcher"
