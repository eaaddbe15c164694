#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every allocation symbol that this machine's libc.so.6 and libstdc++.so.6
# export is exported by the library too, or stands below with its reason.
# Usage: symbols.sh LIBRARY
set -euo pipefail

library=$1
absent() { # absent SYMBOL: why the library does not export it
	case $1 in
	__libc_malloc | __libc_calloc | __libc_realloc | __libc_free | __libc_memalign | __libc_valloc | __libc_pvalloc | __libc_reallocarray | __libc_mallinfo | __libc_mallopt)
		echo "glibc's own names for its own heap; the library itself calls some" ;;
	__malloc_hook | __free_hook | __realloc_hook | __memalign_hook | __after_morecore_hook | __malloc_initialize_hook | __morecore | __default_morecore)
		echo "hooks that glibc 2.34 took out; kept as old versions without effect" ;;
	malloc_get_state | malloc_set_state) echo "old versions only, for emacs images made before 2017" ;;
	mcheck* | mprobe | mtrace | muntrace) echo "debugging aids of glibc's own heap" ;;
	__malloc_*) echo "glibc's internals" ;;
	*) return 1 ;;
	esac
}

libc=$(ldconfig -p | awk '/libc\.so\.6 .*x86-64/ && !seen++ { print $NF }')
libstdcxx=$(ldconfig -p | awk '/libstdc\+\+\.so\.6 .*x86-64/ && !seen++ { print $NF }')
names() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u; }
declare -A ours # the names that the library exports
while IFS= read -r symbol; do
	ours[$symbol]=1
done < <(names "$library")
wanted=$(
	# Not those that allocate something else: room in a file, keys, locales, processor sets.
	names "$libc" | grep -E 'alloc|memalign|mallinfo|mallopt|^c?free$|^free_|^__free|^__libc_free$|mcheck|mprobe|mtrace|muntrace|morecore' |
		grep -vE 'obstack|fallocate|sched_cpu|_IO_|freelocale|option_alloc|pkey_alloc|__libc_alloc'
	[[ -z $libstdcxx ]] || names "$libstdcxx" | grep -E '^_Z(n[wa]m|d[la]Pv)'
)
bad=0
found=0
missing=0
while IFS= read -r symbol; do
	if [[ -n ${ours[$symbol]:-} ]]; then
		found=$((found + 1))
	elif reason=$(absent "$symbol"); then
		missing=$((missing + 1))
		printf 'absent: %-28s %s\n' "$symbol" "$reason"
	else
		printf 'NEITHER EXPORTED NOR LISTED: %s\n' "$symbol"
		bad=1
	fi
done <<<"$wanted"
# 20 of glibc 2.36, 8 operators new, 12 and more operators delete.
((found >= 36)) || { printf 'only %d symbols compared\n' "$found"; bad=1; }

# C23's, which this glibc does not have yet.
for symbol in free_sized free_aligned_sized cfree; do
	[[ -n ${ours[$symbol]:-} ]] || { printf 'not exported: %s\n' "$symbol"; bad=1; }
done

# No call inside the library may go through the PLT to a name that it exports: it would land in
# whoever stands in front of it. Excepted are libgcc's unwinder, which is linked in for jemalloc's
# profiler and never runs, jemalloc's look-up of pthread_create, and its sbrk, which its options
# keep it from calling.
calls=$(objdump -d --no-show-raw-insn "$library" | awk '
	/^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name) }
	match($0, /(call|jmp) .*<[A-Za-z0-9_]+@plt>/) {
		target = $NF; gsub(/[<>]/, "", target); sub(/@plt/, "", target); print target, name }')
[[ -n $calls ]] || { printf 'objdump shows no call\n'; bad=1; }
while read -r symbol caller; do
	[[ -n ${ours[$symbol]:-} ]] || continue
	case "$symbol $caller" in
	"malloc "* | "free "*)
		case $caller in
		search_object* | init_object* | __register_frame* | __deregister_frame* | start_fde_sort* | end_fde_sort* | release_registered* | btree_* | _Unwind_Find_FDE*) continue ;;
		esac
		;;
	"dlsym "*background* | "dlsym je_"* | "dlsym pthread_create_fptr_init"* | "sbrk "*) continue ;;
	esac
	printf '%s calls %s through the dynamic linker\n' "$caller" "$symbol"
	bad=1
done <<<"$calls"
printf '%d exported, %d absent with a reason\n' "$found" "$missing"
exit "$bad"
