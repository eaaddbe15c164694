// SPDX-License-Identifier: MIT
//
// The code ranges of driver libraries; libm stands for a driver.
#include "unit.h"

#include <dlfcn.h>
#include <math.h>

#include "driver_text.h"

static const void *base_of(const void *address) {
    Dl_info info;
    cr_assert_neq(dladdr(address, &info), 0);
    return info.dli_fbase;
}

Test(driver_text, a_library_s_code_and_nothing_else) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    cr_assert_not_null(library);
    char *code = dlsym(library, "tgamma");
    char *data = dlsym(library, "signgam");
    cr_assert_not_null(code);
    cr_assert_not_null(data);
    cr_assert_not(gh_driver_text_has(code));
    gh_driver_text_add(base_of(code));
    cr_assert_geq(atomic_load(&gh_driver_text_count), 1);
    cr_assert(gh_driver_text_has(code));
    cr_assert(gh_driver_text_has(dlsym(library, "cbrt")));
    cr_assert_not(gh_driver_text_has(data));
    cr_assert_not(gh_driver_text_has(dlsym(RTLD_DEFAULT, "malloc")));
    cr_assert_not(gh_driver_text_has(NULL));
    cr_assert_not(gh_driver_text_has((void *)UINTPTR_MAX));
}

Test(driver_text, an_address_that_is_no_library) {
    int local = 0;
    gh_driver_text_add(&local);
    gh_driver_text_add(NULL);
    cr_assert_eq(atomic_load(&gh_driver_text_count), 0);
}

// More libraries than there is room for: the ranges that are there stay right.
Test(driver_text, full_table) {
    const void *base = base_of(dlsym(RTLD_DEFAULT, "malloc"));
    for (int i = 0; i < 100; i++)
        gh_driver_text_add(base);
    cr_assert_leq(atomic_load(&gh_driver_text_count), GH_DRIVER_TEXT_MAX);
    cr_assert(gh_driver_text_has(dlsym(RTLD_DEFAULT, "malloc")));
}
