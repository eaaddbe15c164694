# SPDX-License-Identifier: MIT
# Copies a jemalloc archive and gives every public symbol in it the prefix gh_je_, and makes it
# call our own functions for mapping memory: libc's names are interposed by us. Internal symbols
# (je_...) and the C++ operators stay as they are: the former are hidden by the link, the latter's
# object is never pulled in.
execute_process(COMMAND ${NM} --defined-only --extern-only --format=posix ${ARCHIVE}
  OUTPUT_VARIABLE listing ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cannot list the symbols of ${ARCHIVE}")
endif()
string(REPLACE "\n" ";" lines "${listing}")
set(renames "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^(je_|gh_je_|_)" AND line MATCHES "^([a-z][A-Za-z0-9_]*) [A-Z]")
    string(APPEND renames "${CMAKE_MATCH_1} gh_je_${CMAKE_MATCH_1}\n")
  endif()
endforeach()
if(NOT listing MATCHES "malloc_conf_2_conf_harder")
  message(FATAL_ERROR "${ARCHIVE} is not jemalloc 5.3 or newer")
endif()
# Its options come from us alone: not from MALLOC_CONF, not from /etc/malloc.conf.
string(APPEND renames "getenv gh_os_no_variable\nsecure_getenv gh_os_no_secure_variable\nreadlink gh_os_no_link\n")
string(APPEND renames "mmap gh_os_mmap\nmunmap gh_os_munmap\nmadvise gh_os_madvise\n")
file(WRITE ${RESULT}.symbols "${renames}")
# Its constructor would boot it in processes that we stay out of. cache_start.c gives threads their
# caches.
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${RESULT}.symbols --remove-section=.init_array
  --remove-section=.rela.init_array --weaken-symbol=je_tsd_tcache_enabled_data_init
  ${ARCHIVE} ${RESULT} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "objcopy failed on ${ARCHIVE}")
endif()
